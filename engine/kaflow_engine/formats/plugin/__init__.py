"""Formats that packages offer."""
