"""Finished rows as records of the output topic, or rows of a table."""
