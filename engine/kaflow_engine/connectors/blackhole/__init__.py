"""Nothing: rows are counted and dropped."""
