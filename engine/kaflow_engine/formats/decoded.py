"""Results of decoding and encoding: rows or values for what is good, reasons for the rest."""

from collections.abc import Sequence
from dataclasses import dataclass

import pyarrow as pa
import pyarrow.compute as pc

from kaflow_engine.duck import queries
from kaflow_engine.duck.wide.integers import in_duckdb
from kaflow_engine.formats.types import arrow_type, parse_type, type_text, without_wide
from kaflow_engine.model.columns import Column


@dataclass(frozen=True, slots=True)
class BadValue:
    """A value that cannot be read or written."""

    row: int
    """Its index in the input."""
    error: str
    """The class of the mistake, such as `InvalidJson`."""
    message: str


@dataclass(frozen=True, slots=True)
class Decoded:
    """The good values as columns, the bad ones one by one."""

    table: pa.Table
    """One row per good value, exactly the asked columns, typed as DuckDB exports them."""
    good: pa.Array
    """int64, ascending: `good[i]` is the index in the input of row `i` of the table."""
    bad: tuple[BadValue, ...]
    """In the order of the input."""


@dataclass(frozen=True, slots=True)
class Encoded:
    """The values of the rows, and why some have none."""

    array: pa.Array
    """binary, one per row; null where the row is bad."""
    bad: tuple[BadValue, ...]

    @property
    def values(self) -> list[bytes | None]:
        """The array as Python values."""
        return self.array.to_pylist()


class Unreadable(Exception):
    """One value cannot be read; `kind` is the class of the mistake."""

    def __init__(self, kind: str, message: str) -> None:
        super().__init__(message)
        self.kind = kind
        self.message = message

    def at(self, row: int) -> BadValue:
        """Return this mistake as the reason why input `row` is bad."""
        return BadValue(row, self.kind, self.message)


def schema_of(columns: Sequence[Column]) -> pa.Schema:
    """Return the Arrow schema of a decoded table with these columns."""
    return pa.schema([pa.field(column.name, arrow_type(column.type)) for column in columns])


def array_of(values: Sequence[object], kind: str) -> pa.Array:
    """Return Python values as a column of a DuckDB type; wide integers are texts of digits."""
    carried = type_text(without_wide(parse_type(kind)))
    array = pa.array(values, arrow_type(carried))
    if carried == type_text(parse_type(kind)):
        return array
    cast = f"SELECT CAST(c AS {in_duckdb(kind)}) AS c FROM rows"
    return queries.query(cast, rows=pa.table({"c": array})).column("c").combine_chunks()


def gathered(
    tables: Sequence[pa.Table], rows: Sequence[pa.Array], bad: Sequence[BadValue], schema: pa.Schema
) -> Decoded:
    """Put parts together in the order of the input; `rows` are the input rows of each table."""
    good = pa.concat_arrays([pa.array([], pa.int64()), *rows])
    arrays = [
        pa.chunked_array([c.cast(f.type) for t in tables for c in t.column(i).chunks], f.type)
        for i, f in enumerate(schema)
    ]
    # the row numbers ride along: a table without columns would lose its number of rows
    table = pa.table([*arrays, good], [*schema.names, ""])
    if sum(len(part) > 0 for part in rows) > 1:
        order = pc.sort_indices(good)
        table, good = table.take(order), good.take(order)
    return Decoded(
        table.select(range(len(schema))), good, tuple(sorted(bad, key=lambda one: one.row))
    )


def shown(value: str, limit: int = 60) -> str:
    """Return a text as a message may show it: short, on one line."""
    text = value if value.isprintable() else repr(value)[1:-1]
    return text if len(text) <= limit else text[: limit - 1] + "…"
