"""What the author wrote: specs, loaders, durations, configuration."""
