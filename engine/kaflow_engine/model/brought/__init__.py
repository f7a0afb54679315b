"""What a pipeline file says that others leave to the configuration."""
