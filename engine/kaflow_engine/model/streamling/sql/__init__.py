"""The SQL of queries: read as words, and changed where it stands."""
