"""Transforms that installed packages offer."""
