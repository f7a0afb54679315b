"""Readers that were added to a pipeline: they begin with all rows of the tables that they read."""
