"""Python functions of a project: declared, found, typed, and made known to DuckDB."""
