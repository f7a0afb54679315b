"""The local executor."""
