"""Joins of events: which match, and when their rows leave."""
