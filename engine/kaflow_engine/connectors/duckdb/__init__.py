"""Tables of DuckDB files."""
