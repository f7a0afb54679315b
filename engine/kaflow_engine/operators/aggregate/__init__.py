"""Rows in groups and windows: what is kept of them, and what leaves."""
