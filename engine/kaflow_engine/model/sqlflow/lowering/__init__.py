"""What a SQLFlow file says, as the keys of a pipeline file."""
