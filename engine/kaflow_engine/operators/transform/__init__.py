"""Transforms: each row becomes none, one or several, without SQL and without state."""
