"""What becomes of rows whose key a table has already."""
