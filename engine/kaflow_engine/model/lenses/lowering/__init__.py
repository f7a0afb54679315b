"""Statements of a processor to the tree of a pipeline file."""
