"""Rows into a table: blocks with tokens; rows that cannot be kept, or are refused, stand alone."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import assert_never

import numpy as np
import pyarrow as pa

from kaflow_engine.connectors.clickhouse.client import Server
from kaflow_engine.connectors.clickhouse.errors import RowsRefused
from kaflow_engine.connectors.clickhouse.names import GONE, VERSION, Names, name, text
from kaflow_engine.connectors.contract import Output
from kaflow_engine.connectors.slots import Places
from kaflow_engine.duck.queries import query
from kaflow_engine.duck.quoting import identifier, literal
from kaflow_engine.flow.records import DELETED, KEY
from kaflow_engine.formats.types import Decimal, List, Map, Scalar, Struct, Type
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
        last = _last_of_each_key(rows, good)
        went = rows[DELETED].to_numpy()[last]
        kept, key = self._versioned(rows, names.key)
        refused += self._blocks(kept, last[~went], names.columns, "+")
        refused += self._blocks(kept, last[went], (key,), "-")
        return sorted(refused, key=lambda one: one.place)

    def _versioned(self, rows: pa.Table, key: Column) -> tuple[pa.Table, Column]:
        """Add the version, whether a row goes, and the key of those that do."""
        asked = f"CAST({identifier(KEY)} AS {key.type})"
        rows = rows.drop_columns([key.name]).append_column(
            key.name,
            query(
                f"SELECT CASE WHEN {identifier(DELETED)} THEN {asked} "
                f"ELSE {identifier(key.name)} END AS key FROM rows",
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


def _last_of_each_key(rows: pa.Table, good: "np.ndarray[tuple[int], np.dtype[np.bool_]]") -> Places:
    """Return the places of the rows that stay in force, in their order."""
    places = np.flatnonzero(good)
    keys = rows[KEY].combine_chunks().dictionary_encode().indices.to_numpy(zero_copy_only=False)
    last: dict[float, int] = dict(zip(keys[places].tolist(), places.tolist(), strict=True))
    return np.array(sorted(last.values()), np.int64)


def _unkept(names: Names, rows: pa.Table) -> list[Refusal]:
    """Return rows with a value that no column keeps; those that go have none."""
    said = [
        f"WHEN {sql} THEN {literal(why)}"
        for column in names.columns
        for sql, why in _faults(column, is_key=column == names.key)
    ]
    if not said:
        return []
    asked = (
        f"SELECT row_number() OVER () - 1 AS place, {identifier(DELETED)} AS gone, "
        f"CASE {' '.join(said)} END AS why FROM rows"
    )
    found = query(f"SELECT place, why FROM ({asked}) WHERE why IS NOT NULL AND NOT gone", rows)
    return [Refusal(row["place"], "ValueNotKept", row["why"]) for row in found.to_pylist()]


def _faults(column: Column, is_key: bool) -> Iterator[tuple[str, str]]:
    sql, kind = identifier(column.name), read(column.type)
    if is_key:
        yield f"{sql} IS NULL", f"column '{column.name}' is the key, and NULL"
    if fault := _fault(sql, kind):
        what = "is a time before 1900 or after 2299"
        if not isinstance(kind, Scalar):
            what = "is, or holds, a list, map or struct that is NULL, or a time out of 1900 to 2299"
        yield fault, f"column '{column.name}' {what}, which ClickHouse does not keep"


def _fault(sql: str, kind: Type, depth: int = 0) -> str | None:
    """Return SQL for whether a value is not kept; None: every one is."""
    match kind:
        case Scalar(name=known) if known == "DATE" or known.startswith("TIMESTAMP"):
            first, last = f"TIMESTAMP '{_FIRST}'", f"TIMESTAMP '{_LAST}'"
            plain = f"CAST({sql} AS {'TIMESTAMP' if 'ZONE' not in known else 'TIMESTAMPTZ'})"
            if "ZONE" in known:
                first, last = f"TIMESTAMPTZ '{_FIRST}+00'", f"TIMESTAMPTZ '{_LAST}+00'"
            return f"coalesce({plain} NOT BETWEEN {first} AND {last}, false)"
        case Scalar() | Decimal():
            return None
        case List(element=element):
            return f"({sql} IS NULL{_any(sql, element, depth)})"
        case Map(key=key, value=value):
            keys, values = f"map_keys({sql})", f"map_values({sql})"
            return f"({sql} IS NULL{_any(keys, key, depth)}{_any(values, value, depth)})"
        case Struct(fields=fields):
            inside = (
                _fault(f"struct_extract({sql}, {literal(each)})", field, depth)
                for each, field in fields
            )
            return f"({' OR '.join([f'{sql} IS NULL', *filter(None, inside)])})"
        case _:
            assert_never(kind)


def _any(sql: str, element: Type, depth: int) -> str:
    inside = _fault(f"x{depth}", element, depth + 1)
    return f" OR len(list_filter({sql}, lambda x{depth}: {inside})) > 0" if inside else ""
