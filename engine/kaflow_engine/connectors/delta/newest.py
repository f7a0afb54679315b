"""The newest rows of a table: the end of the file that was added last."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import unquote

import pyarrow as pa
import pyarrow.parquet as pq
from deltalake import DeltaTable

from kaflow_engine.errors import SourceError


@dataclass(frozen=True, slots=True)
class TableEnd:
    """The newest rows of a table."""

    rows: tuple[dict[str, Any], ...]
    """Newest first, as far as files tell."""
    version: int


def newest_table_rows(folder: Path, limit: int, most_bytes: int) -> TableEnd:
    """Return the last rows of the newest file, or none where a row group of it is too large.

    Args:
        folder: Of the table.
        limit: Rows.
        most_bytes: Of a row group, not compressed.

    Raises:
        SourceError: There is no table, or it cannot be read.
    """
    try:
        table = DeltaTable(str(folder))
        files = pa.table(table.get_add_actions())
        if not files.num_rows:
            return TableEnd((), table.version())
        times = files["modification_time"].to_pylist()
        newest = max(range(files.num_rows), key=times.__getitem__)
        rows = _last_rows(folder / unquote(files["path"][newest].as_py()), limit, most_bytes)
        (column,) = table.metadata().partition_columns
        partition = files["partition"][newest].as_py()[column]
    except Exception as error:
        raise SourceError(f"cannot read table '{folder.name}': {error}") from error
    return TableEnd(tuple({**row, column: partition} for row in rows), table.version())


def _last_rows(file: Path, limit: int, most_bytes: int) -> list[dict[str, Any]]:
    with pq.ParquetFile(file) as parquet:
        last = parquet.num_row_groups - 1
        if last < 0 or parquet.metadata.row_group(last).total_byte_size > most_bytes:
            return []
        group = parquet.read_row_group(last)
    return group.slice(max(0, group.num_rows - limit)).to_pylist()[::-1]
