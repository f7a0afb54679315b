"""The files that a commit to a Delta table adds, and those whose rows a backfill replaces."""

import json
import time
from collections.abc import Iterator, Mapping, Sequence
from functools import reduce
from pathlib import Path
from secrets import token_hex
from typing import Any, assert_never

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from deltalake import DeltaTable
from deltalake.transaction import AddAction, RemoveAction

from kaflow_engine.connectors.delta.data_files import TableFile, write_files
from kaflow_engine.connectors.replaced import Replaced, ReplacedGroups, ReplacedRecords
from kaflow_engine.errors import StateError

Action = AddAction | RemoveAction


def add_action(file: TableFile, column: str) -> AddAction:
    """Return what adds a file.

    Args:
        file: Which one.
        column: The one by which the table is partitioned.
    """
    return AddAction(
        path=file.path,
        size=file.size,
        partition_values={column: file.partition},
        modification_time=time.time_ns() // 1_000_000,
        data_change=True,
        stats=json.dumps({"numRecords": file.rows}),
    )


class Replacement:
    """Finds in a table what goes; each file is looked at once, however often the table changes."""

    def __init__(self, folder: Path, column: str, replaced: Replaced) -> None:
        """Look at nothing yet.

        Args:
            folder: Of the table.
            column: The one by which it is partitioned.
            replaced: The rows that go.
        """
        self._folder, self._column, self._replaced = folder, column, replaced
        self._known: dict[str, tuple[Action, ...]] = {}

    def actions(self, table: DeltaTable) -> list[Action]:
        """Return what removes the rows from the version of the table that is loaded.

        Of a file with rows that go and others that stay, those are written to another file first.

        Raises:
            StateError: Rows name no record, or no group.
        """
        found: list[Action] = []
        for file in self._files(table):
            path = file["path"]
            if path not in self._known:
                self._known[path] = tuple(self._replace(file))
            found += self._known[path]
        return found

    def check_known(self, table: DeltaTable) -> None:
        """Refuse rows that name no record or group, of the version of the table that is loaded.

        Raises:
            StateError: There are some.
        """
        for file in self._files(table):
            self._going(file)

    def _files(self, table: DeltaTable) -> Iterator[dict[str, Any]]:
        files: Any = pa.table(table.get_add_actions(flatten=True))
        for file in files.to_pylist():
            if file[f"partition.{self._column}"] in self._replaced.partitions:
                yield file

    def _going(self, file: Mapping[str, Any]) -> pa.Array:
        """Return for each row of a file whether it goes."""
        match self._replaced:
            case ReplacedRecords(source=names, read=read, unknown=forced):
                source = self._columns(file, names)
                unknown, named = _any_null(source), "record they were made of"
                going = _read_before(source, read)
            case ReplacedGroups(group=name, unknown=forced):
                source = self._columns(file, [name])
                unknown, named = _any_null(source), "group they are of"
                going = pc.invert(unknown)
            case _:
                assert_never(self._replaced)
        if not forced and pc.any(unknown).as_py():
            raise StateError(
                f"table '{self._folder.name}' has rows in partition "
                f"'{file[f'partition.{self._column}']}' that do not name the {named}, so nothing "
                "says whether the backfill makes them again",
                hint="an earlier version of kaflow or another program wrote them; "
                "force the backfill to replace them",
            )
        return pc.or_(going, unknown)

    def _columns(self, file: Mapping[str, Any], names: Sequence[str]) -> list[pa.Array]:
        """Return columns of a file; of one that lacks a column all of them without values."""
        parquet = pq.ParquetFile(self._folder / file["path"])
        if not set(names) <= set(parquet.schema_arrow.names):  # an earlier version wrote it
            return [pa.nulls(parquet.metadata.num_rows)] * len(names)
        table = parquet.read(columns=list(names))
        return [table[name].combine_chunks() for name in names]

    def _replace(self, file: Mapping[str, Any]) -> Iterator[Action]:
        going = self._going(file)
        gone = pc.sum(going).as_py() or 0
        if not gone:
            return
        partition = file[f"partition.{self._column}"]
        yield RemoveAction(
            path=file["path"],
            data_change=True,
            deletion_timestamp=time.time_ns() // 1_000_000,
            size=file["size_bytes"],
            partition_values={self._column: partition},
        )
        if gone == len(going):
            return
        rows = pq.ParquetFile(self._folder / file["path"]).read().filter(pc.invert(going))
        rows = rows.append_column(self._column, pa.repeat(partition, rows.num_rows))
        for kept in write_files(self._folder, self._column, rows, f"kept-{token_hex(8)}"):
            yield add_action(kept, self._column)


def _any_null(columns: Sequence[pa.Array]) -> pa.Array:
    return reduce(pc.or_, (column.is_null() for column in columns))


def _read_before(source: Sequence[pa.Array], read: Mapping[int, tuple[int, int]]) -> pa.Array:
    """Return for each row whether it is made of a record that was read."""
    partitions, offsets = (column.cast(pa.int64()) for column in source)
    going = pa.repeat(False, len(offsets))
    for partition, (first, end) in read.items():
        later = pc.and_(pc.greater_equal(offsets, first), pc.less(offsets, end))
        here = pc.and_(pc.equal(partitions, partition), later)
        going = pc.or_(going, pc.fill_null(here, False))
    return going
