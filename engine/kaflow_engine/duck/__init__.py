"""The one door to DuckDB: text quoted, types bound, data queried."""
