"""Writes rows as Parquet files in the folders of a partitioned table."""

import os
from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from kaflow_engine.errors import SinkError


@dataclass(frozen=True, slots=True)
class TableFile:
    """A file that no commit names yet."""

    path: str
    """Below the table's folder."""
    partition: str
    rows: int
    size: int
    """Bytes."""


def write_files(folder: Path, column: str, rows: pa.Table, name: str) -> list[TableFile]:
    """Write one file for each partition.

    Args:
        folder: Of the table.
        column: The one by which it is partitioned; files do not hold it.
        rows: What to write.
        name: Of the files, without suffix; another one for each task and try.

    Raises:
        SinkError: They cannot be written.
    """
    found: list[TableFile] = []
    for partition in sorted(pc.unique(rows[column]).to_pylist()):
        part = rows.filter(pc.equal(rows[column], partition)).drop_columns([column])
        path = f"{column}={partition}/{name}.parquet"
        try:
            found.append(TableFile(path, partition, part.num_rows, _write(folder / path, part)))
        except OSError as error:
            raise SinkError(
                f"cannot write to table '{folder}': {error.strerror or error}",
                hint="fix the folder, or set `warehouse` to another one",
            ) from error
    return found


def _write(path: Path, rows: pa.Table) -> int:
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("xb") as file:
        pq.write_table(rows, file, compression="zstd")
        file.flush()
        os.fsync(file.fileno())
        return file.tell()
