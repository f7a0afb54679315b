"""Tables of SQLite files."""
