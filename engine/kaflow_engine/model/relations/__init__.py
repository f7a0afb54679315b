"""What a pipeline file says of its relations."""
