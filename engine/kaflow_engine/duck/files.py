"""Files of DuckDB's own databases, opened to be read."""

import duckdb

from kaflow_engine.duck.queries import SETTINGS


def open_file(path: str) -> duckdb.DuckDBPyConnection:
    """Open a database, of which nothing but that file can be read, and nothing written.

    While it is open no other process can write to it. Errors are DuckDB's.
    """
    found = duckdb.connect(
        path, read_only=True, config={**SETTINGS, "enable_external_access": False}
    )
    found.execute("SET TimeZone = 'UTC'")
    return found
