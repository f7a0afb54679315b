"""Data quality: what rows should have in common, and whether they do."""
