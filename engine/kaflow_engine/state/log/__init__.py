"""The batch log and the change log."""
