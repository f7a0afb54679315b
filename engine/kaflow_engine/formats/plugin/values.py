"""Values that the format of a plugin reads and writes: rows of the asked types, and bad ones."""

from collections.abc import Mapping, Sequence

import duckdb
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from kaflow_engine.duck.queries import query
from kaflow_engine.duck.quoting import identifier
from kaflow_engine.duck.wide.taught import tried_cast
from kaflow_engine.errors import KaflowError, SinkUnfit, SourceUnfit
from kaflow_engine.formats.decoded import BadValue, Decoded, Encoded, gathered, schema_of
from kaflow_engine.model.columns import Column
from kaflow_engine.plugins.formats import DecodedRows, EncodedValues, FormatPlugin
from kaflow_engine.plugins.halves import in_halves

_ERROR = "PluginError"
_PASSING = (KaflowError,)
"""What no value is the cause of."""


class BrokenContract(Exception):
    """What a plugin gives is not what its contract says."""


def decode_values(
    name: str,
    plugin: FormatPlugin,
    values: pa.Array | pa.ChunkedArray,
    columns: Sequence[Column],
) -> Decoded:
    """Let a plugin decode values; those on which it raises, it is given by themselves.

    Raises:
        SourceUnfit: It does not keep its contract.
    """
    array = values.combine_chunks() if isinstance(values, pa.ChunkedArray) else values
    asked = {column.name: column.type for column in columns}
    tables: list[pa.Table] = []
    places: list[pa.Array] = []
    bad: list[BadValue] = []
    parts = in_halves(
        lambda start, count: plugin.decode(array.slice(start, count), asked),
        len(array),
        (KaflowError,),
    )
    for start, count, made in parts if len(array) else ():
        if isinstance(made, Exception):
            bad.append(_raised(start, made))
            continue
        try:
            table, good, wrong = _rows(made, count, columns)
        except BrokenContract as broken:
            raise SourceUnfit(*_broken(name, broken, "DecodedRows")) from broken
        tables.append(table)
        places.append(pc.add(good, start))
        bad += [BadValue(start + one.row, one.error, one.message) for one in wrong]
    return gathered(tables, places, bad, schema_of(columns))


def _rows(
    made: object, count: int, columns: Sequence[Column]
) -> tuple[pa.Table, pa.Array, list[BadValue]]:
    """Return the rows of the asked types, the place of each, and what is bad."""
    if not isinstance(made, DecodedRows):
        raise BrokenContract(f"gives a {type(made).__name__}, not DecodedRows")
    bad = _failures(made.failures, count)
    missing = [c.name for c in columns if c.name not in made.rows.column_names]
    if missing:
        raise BrokenContract(f"gives no column '{missing[0]}'")
    good = pa.array(np.setdiff1d(np.arange(count), [one.row for one in bad]), pa.int64())
    if not columns:  # a table without columns does not know how many rows it has
        return pa.table({}), good, bad
    if made.rows.num_rows != len(good):
        raise BrokenContract(
            f"gives {made.rows.num_rows} rows of {count} values, of which {len(bad)} are bad"
        )
    rows = made.rows.select([column.name for column in columns])
    if rows.schema.types == schema_of(columns).types:
        return rows, good, bad
    cast, lost = _cast(rows, columns)
    fits = np.setdiff1d(np.arange(len(good)), [*lost])
    unfit = (BadValue(good[row].as_py(), "DoesNotFit", why) for row, why in lost.items())
    return cast.take(fits), good.take(pa.array(fits)), [*bad, *unfit]


def _cast(rows: pa.Table, columns: Sequence[Column]) -> tuple[pa.Table, Mapping[int, str]]:
    """Cast rows to the types of columns; return also the rows of which a value does not fit."""
    given = rows.rename_columns([str(n) for n in range(len(columns))])
    casts = (
        f"{tried_cast(identifier(str(n)), each.type, of='')} AS {identifier(str(n))}"
        for n, each in enumerate(columns)
    )
    try:
        found = query(f"SELECT {', '.join(casts)} FROM rows", given)
    except duckdb.Error as error:
        types = ", ".join(column.type for column in columns)
        raise BrokenContract(f"gives columns that cannot be cast to {types}") from error
    lost: dict[int, str] = {}
    for n, column in enumerate(columns):
        unfit = pc.and_(found[n].is_null(), given[n].is_valid())
        for row in pc.indices_nonzero(unfit).to_pylist():
            lost.setdefault(row, f"column '{column.name}' does not fit {column.type}")
    return found.rename_columns(rows.column_names), lost


def encode_rows(
    name: str, plugin: FormatPlugin, rows: pa.Table, columns: Sequence[Column]
) -> Encoded:
    """Let a plugin encode rows; those on which it raises, it is given by themselves.

    Raises:
        SinkUnfit: It does not keep its contract.
    """
    given = {column.name: column.type for column in columns}
    arrays: list[pa.Array] = []
    bad: list[BadValue] = []
    parts = in_halves(
        lambda start, count: plugin.encode(rows.slice(start, count), given), rows.num_rows, _PASSING
    )
    for start, count, made in parts if rows.num_rows else ():
        if isinstance(made, Exception):
            bad.append(_raised(start, made))
            arrays.append(pa.nulls(count, pa.binary()))
            continue
        try:
            array, wrong = _values(made, count)
        except BrokenContract as broken:
            raise SinkUnfit(*_broken(name, broken, "EncodedValues")) from broken
        arrays.append(array)
        bad += [BadValue(start + one.row, one.error, one.message) for one in wrong]
    return Encoded(pa.concat_arrays([pa.nulls(0, pa.binary()), *arrays]), tuple(bad))


def _values(made: object, count: int) -> tuple[pa.Array, list[BadValue]]:
    """Return the values, NULL where a row is bad, and why each of these is."""
    if not isinstance(made, EncodedValues):
        raise BrokenContract(f"gives a {type(made).__name__}, not EncodedValues")
    bad = {one.row: one for one in _failures(made.failures, count)}
    values = made.values
    array = values.combine_chunks() if isinstance(values, pa.ChunkedArray) else values
    if len(array) != count:
        raise BrokenContract(f"gives {len(array)} values of {count} rows")
    if array.type != pa.binary():
        raise BrokenContract(f"gives values of the type {array.type}, not binary")
    for row in pc.indices_nonzero(array.is_null()).to_pylist():
        bad.setdefault(row, BadValue(row, _ERROR, "the plugin gives no value"))
    keep = np.ones(count, dtype=bool)
    keep[[*bad]] = False
    array = pc.if_else(pa.array(keep), array, pa.scalar(None, pa.binary()))
    return array, [bad[row] for row in sorted(bad)]


def _failures(said: Mapping[int, str], count: int) -> list[BadValue]:
    if any(not 0 <= row < count for row in said):
        raise BrokenContract("fails on a place that it was not given")
    return [BadValue(row, _ERROR, why) for row, why in sorted(said.items())]


def _raised(row: int, error: Exception) -> BadValue:
    return BadValue(row, _ERROR, f"{type(error).__name__}: {error}")


def _broken(name: str, broken: BrokenContract, what: str) -> tuple[str, None, str]:
    hint = f"correct the plugin: see {what} of kaflow_engine.api.formats"
    return f"plugin '{name}' {broken}", None, hint
