"""The keyed join: one step in one task."""
