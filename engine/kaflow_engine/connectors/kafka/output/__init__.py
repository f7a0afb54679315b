"""Output topics: created, and their rows read back."""
