"""A kind of sink for kaflow."""
