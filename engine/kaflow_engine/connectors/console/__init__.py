"""The standard output of whoever runs a pipeline."""
