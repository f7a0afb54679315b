"""Buckets: what is copied into them, and how they are reached."""
