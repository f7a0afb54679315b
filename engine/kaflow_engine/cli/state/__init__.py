"""`kaflow state`."""
