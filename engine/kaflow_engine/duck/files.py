"""Files of DuckDB's own databases, opened to be read."""

from collections.abc import Sequence

import duckdb

from kaflow_engine.duck.queries import SETTINGS
from kaflow_engine.duck.quoting import literal


def open_file(path: str) -> duckdb.DuckDBPyConnection:
    """Open a database, of which nothing but that file can be read, and nothing written.

    While it is open no other process can write to it. Errors are DuckDB's.
    """
    found = duckdb.connect(
        path, read_only=True, config={**SETTINGS, "enable_external_access": False}
    )
    found.execute("SET TimeZone = 'UTC'")
    return found


def open_among(paths: Sequence[str], folders: Sequence[str]) -> duckdb.DuckDBPyConnection:
    """Open a database in memory, from which some files can be reached, and no others.

    Its settings cannot be changed any more. Errors are DuckDB's.

    Args:
        paths: Of files.
        folders: All whose files can be reached.
    """
    found = duckdb.connect(
        config={**SETTINGS, "memory_limit": "512MB", "python_enable_replacements": False}
    )
    files = ", ".join(literal(path) for each in paths for path in (each, f"{each}.wal"))
    all_of = ", ".join(map(literal, folders))
    for sql in (
        "SET GLOBAL TimeZone = 'UTC'",
        f"SET allowed_paths = [{files}]",
        f"SET allowed_directories = [{all_of}]",
        "SET enable_external_access = false",
        "SET lock_configuration = true",
    ):
        found.execute(sql)
    return found
