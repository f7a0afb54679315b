"""Tables of PostgreSQL as a source of records."""
