"""The keyed join in one task."""
