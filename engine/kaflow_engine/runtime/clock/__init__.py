"""Batch time and ticks."""
