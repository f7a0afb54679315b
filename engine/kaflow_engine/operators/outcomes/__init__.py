"""What became of each driving record."""
