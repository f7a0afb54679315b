"""Rows into a table: blocks with tokens; rows that cannot be kept, or are refused, stand alone."""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from kaflow_engine.connectors.clickhouse.client import Server
from kaflow_engine.connectors.clickhouse.errors import RowsRefused
from kaflow_engine.connectors.clickhouse.names import GONE, VERSION, Names, name, text
from kaflow_engine.connectors.contract import Output
from kaflow_engine.connectors.faults import anywhere, faulty_rows
from kaflow_engine.connectors.slots import Places, last_of_each_key
from kaflow_engine.duck.queries import query
from kaflow_engine.duck.quoting import identifier
from kaflow_engine.flow.records import DELETED, KEY
from kaflow_engine.formats.types import Decimal, Scalar, Type
from kaflow_engine.formats.types import parse_type as read
from kaflow_engine.model.columns import Column

_BLOCK = 100_000
"""Rows of a block; the server makes one part of it in each partition of the table."""
_SETTINGS = (
    "async_insert = 0, insert_deduplicate = 1, input_format_null_as_default = 0, "
    "input_format_arrow_allow_missing_columns = 0"
)
_FIRST, _LAST = "1900-01-01 00:00:00", "2299-12-31 23:59:59.999999"
"""Of times that the server computes with; it keeps others, and shows wrong ones."""


@dataclass(frozen=True, slots=True)
class Refusal:
    """A row that is not taken."""

    place: int
    """Among the rows that were given."""
    error: str
    why: str


@dataclass(frozen=True, slots=True)
class RowWriter:
    """Writes rows of one delivery partition of one batch."""

    output: Output
    token: str
    """What the blocks of the partition and the batch are called."""
    version: int
    """Of the rows, where they replace each other."""

    def write(self, rows: pa.Table) -> list[Refusal]:
        """Write rows, those of a key in their order.

        Args:
            rows: The columns of the output, with those of `flow.records`.

        Returns:
            Rows that were not taken, by place; the others are written.

        Raises:
            ClickHouseAway: The server does not answer; blocks may be there, which come again.
            ClickHouseUnfit: It refuses all rows.
        """
        output, names = self.output, Names(self.output)
        if output.key is not None and names.columns != output.columns:
            rows = rows.append_column(output.key, rows[KEY])
        refused = _unkept(names, rows)
        good = np.ones(rows.num_rows, np.bool_)
        good[[one.place for one in refused]] = False
        if names.key is None:
            places = np.flatnonzero(good)
            refused += self._blocks(rows, places, names.columns, "+")
            return sorted(refused, key=lambda one: one.place)
        last = last_of_each_key(rows, np.flatnonzero(good))
        went = rows[DELETED].to_numpy()[last]
        kept, key = self._versioned(rows, names.key)
        refused += self._blocks(kept, last[~went], names.columns, "+")
        refused += self._blocks(kept, last[went], (key,), "-")
        return sorted(refused, key=lambda one: one.place)

    def _versioned(self, rows: pa.Table, key: Column) -> tuple[pa.Table, Column]:
        """Add the version, whether a row goes, and the key of those that do."""
        own, text = (f"CAST({identifier(each)} AS {key.type})" for each in (key.name, KEY))
        rows = rows.drop_columns([key.name]).append_column(
            key.name,
            query(
                f"SELECT CASE WHEN {identifier(DELETED)} THEN {text} ELSE {own} END AS key "
                "FROM rows",
                rows,
            )["key"],
        )
        version = pa.array(np.full(rows.num_rows, self.version, np.uint64))
        gone = pa.array(rows[DELETED].to_numpy().astype(np.uint8))
        return rows.append_column(VERSION, version).append_column(GONE, gone), key

    def _blocks(
        self, rows: pa.Table, places: Places, columns: tuple[Column, ...], sign: str
    ) -> Iterator[Refusal]:
        for start in range(0, len(places), _BLOCK):
            yield from self._block(rows, places[start : start + _BLOCK], columns, sign)

    def _block(
        self, rows: pa.Table, places: Places, columns: tuple[Column, ...], sign: str
    ) -> Iterator[Refusal]:
        """Write some rows at once; where one of them is refused, each half on its own."""
        names = [column.name for column in columns]
        if self.output.changes:
            names += [VERSION, GONE]
        # The same rows have the same token in each try: they stand in one order.
        token = f"{self.token}/{sign}{places[0]}-{places[-1]}"
        insert = (
            f"INSERT INTO {Names(self.output).table} ({', '.join(map(name, names))}) SETTINGS "
            f"{_SETTINGS}, insert_deduplication_token = {text(token)} FORMAT ArrowStream"
        )
        block = rows.select(names).take(pa.array(places))
        try:
            Server(self.output).run("writing rows", insert, _stream(block))
        except RowsRefused as error:
            if len(places) == 1:
                yield Refusal(int(places[0]), error.error, error.why)
                return
            middle = len(places) // 2
            yield from self._block(rows, places[:middle], columns, sign)
            yield from self._block(rows, places[middle:], columns, sign)


def _stream(rows: pa.Table) -> bytes:
    """Return rows as one compressed record batch."""
    buffer = pa.BufferOutputStream()
    options = pa.ipc.IpcWriteOptions(compression="zstd")
    with pa.ipc.new_stream(buffer, rows.schema, options=options) as stream:
        stream.write_table(rows.combine_chunks())
    return buffer.getvalue().to_pybytes()


def _unkept(names: Names, rows: pa.Table) -> list[Refusal]:
    """Return rows with a value that no column keeps; those that go have none."""
    faults = [
        fault
        for column in names.columns
        for fault in _faults_of(column, is_key=column == names.key)
    ]
    found = faulty_rows(rows, faults)
    return [Refusal(place, "ValueNotKept", why) for place, why in found]


def _faults_of(column: Column, is_key: bool) -> Iterator[tuple[str, str]]:
    sql, kind = identifier(column.name), read(column.type)
    if is_key:
        yield f"{sql} IS NULL", f"column '{column.name}' is the key, and NULL"
    if found := anywhere(_fault, sql, kind):
        what = "is a time before 1900 or after 2299"
        if not isinstance(kind, Scalar):
            what = "is, or holds, a list, map or struct that is NULL, or a time out of 1900 to 2299"
        yield found, f"column '{column.name}' {what}, which ClickHouse does not keep"


def _fault(sql: str, kind: Type) -> str | None:
    if not isinstance(kind, Scalar):
        return None if isinstance(kind, Decimal) else f"{sql} IS NULL"
    if not kind.name.startswith(("DATE", "TIMESTAMP")):
        return None
    zone, offset = ("TIMESTAMPTZ", "+00") if "ZONE" in kind.name else ("TIMESTAMP", "")
    first, last = (f"{zone} '{each}{offset}'" for each in (_FIRST, _LAST))
    return f"CAST({sql} AS {zone}) NOT BETWEEN {first} AND {last}"
