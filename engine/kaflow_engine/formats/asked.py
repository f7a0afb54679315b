"""Columns as a schema has them, to those that are asked for."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import duckdb
import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from kaflow_engine.duck import queries
from kaflow_engine.duck.wide.integers import BIGNUM
from kaflow_engine.duck.wide.taught import tried_cast
from kaflow_engine.duck.wide.vectors import number_in
from kaflow_engine.formats.decoded import BadValue, Decoded, gathered, schema_of, shown
from kaflow_engine.formats.types import arrow_type, parse_type, type_text
from kaflow_engine.model.columns import Column

Longs = npt.NDArray[np.int64]
Bools = npt.NDArray[np.bool_]


@dataclass(frozen=True, slots=True)
class Part:
    """What became of the values of one schema."""

    table: pa.Table
    """The asked columns, by place, and one more."""
    rows: Longs
    """The input row of each row, ascending."""
    bad: list[BadValue]


def as_asked(
    table: pa.Table,
    rows: Longs,
    carried: Mapping[str, str],
    columns: Sequence[Column],
    bad: list[BadValue],
) -> Part:
    """Cast columns as SQL does to the types that are asked for; those that are not there are NULL.

    Args:
        table: The columns that were read, by name.
        rows: The input row of each, in any order.
        carried: The DuckDB type of each column that was read.
        columns: What is asked for.
        bad: Taken over into the result, where values that cannot be cast are added.
    """
    if np.any(rows[1:] < rows[:-1]):
        order = np.argsort(rows)
        table, rows = table.take(pa.array(order)), rows[order]
    good = np.ones(len(rows), np.bool_)
    arrays: list[pa.Array] = []
    for column in columns:
        wanted = type_text(parse_type(column.type))
        if column.name not in carried:
            arrays.append(pa.nulls(len(rows), arrow_type(wanted)))
            continue
        array = table.column(column.name).combine_chunks()
        if wanted != carried[column.name]:
            own, given = carried[column.name], array
            array, fits = _try_cast(given, wanted, own)
            for at in np.flatnonzero(~fits & good):
                value = shown(_text(given[int(at)].as_py(), own))
                why = f"column '{column.name}': {value} is not a {wanted}"
                bad.append(BadValue(int(rows[at]), "WrongType", why))
            good &= fits
        arrays.append(array)
    names = [f"c{index}" for index in range(len(columns))]
    cast = pa.table([*arrays, pa.array(good)], [*names, ""])
    return Part(cast if good.all() else cast.filter(pa.array(good)), rows[good], bad)


def gathered_parts(
    parts: Sequence[Part], bad: Sequence[BadValue], columns: Sequence[Column]
) -> Decoded:
    """Return what the values of all schemas have become, in the order of the input."""
    return gathered(
        [part.table for part in parts],
        [pa.array(part.rows, pa.int64()) for part in parts],
        bad,
        schema_of(columns),
    )


def _text(value: object, carried: str) -> str:
    if carried == BIGNUM and isinstance(value, bytes):
        return str(number_in(value))
    return str(value)


def _try_cast(array: pa.Array, wanted: str, of: str) -> tuple[pa.Array, Bools]:
    sql = f"SELECT {tried_cast('c', wanted, of)} AS c FROM rows"
    try:
        found = queries.query(sql, rows=pa.table({"c": array})).column("c").combine_chunks()
    except (duckdb.BinderException, duckdb.ConversionException):  # no cast between these types
        found = pa.nulls(len(array), arrow_type(wanted))
    return found, np.asarray(pc.or_(found.is_valid(), array.is_null()))
