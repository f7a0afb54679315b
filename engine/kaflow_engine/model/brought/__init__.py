"""What front ends find in a file beside its pipeline: settings that it brings, and suggestions."""
