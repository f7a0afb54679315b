"""Decode lines of CSV (RFC 4180) into columns.

A field without quotes that is empty is NULL, `""` is an empty text. The text of a field is read as
JSON reads a string of the column's type. One end of line after the last field is no part of it.
"""

import re
from collections.abc import Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from kaflow_engine.formats.csv.typed import typed
from kaflow_engine.formats.decoded import BadValue, Decoded, Unreadable, shown
from kaflow_engine.formats.text import Texts, texts_of
from kaflow_engine.model.columns import Column

_FIELD = re.compile(r'(?:"((?:[^"]|"")*)"|([^",\r\n]*))(,|\Z)')


def decode_csv(values: pa.Array | pa.ChunkedArray, columns: Sequence[Column]) -> Decoded:
    """Decode `values` (binary, none null), one line each, into `columns`, which are all it has."""
    texts, bad = texts_of(values)
    texts = Texts(pc.replace_substring_regex(texts.values, r"\r?\n\z", ""), texts.rows)
    plain = pc.invert(pc.match_substring_regex(texts.values, r'["\r\n]'))
    cells, rows = _split(texts.keep(plain), len(columns), bad)
    slow_cells, slow_rows = _read(texts.keep(pc.invert(plain)), len(columns), bad)
    places = pa.concat_arrays([rows, slow_rows])
    order = pc.sort_indices(places)
    fields = [pa.concat_arrays([a, b]).take(order) for a, b in zip(cells, slow_cells, strict=True)]
    return typed(fields, places.take(order), columns, bad)


def _split(texts: Texts, count: int, bad: list[BadValue]) -> tuple[list[pa.Array], pa.Array]:
    """Split lines without quotes; return the texts of each column, and the rows."""
    parts = pc.split_pattern(texts.values, ",")
    lengths = pc.list_value_length(parts)
    fits = pc.equal(lengths, count)
    if not pc.all(fits).as_py():
        wrong = pc.invert(fits)
        for row, length in zip(
            texts.rows.filter(wrong).to_pylist(), lengths.filter(wrong).to_pylist(), strict=True
        ):
            bad.append(_wrong_number(length, count).at(row))
        parts, texts = parts.filter(fits), texts.keep(fits)
    flat = pc.list_flatten(parts)
    flat = pc.if_else(pc.equal(flat, ""), pa.scalar(None, pa.string()), flat)
    places = np.arange(len(texts.rows)) * count
    return [flat.take(pa.array(places + at)) for at in range(count)], texts.rows


def _read(texts: Texts, count: int, bad: list[BadValue]) -> tuple[list[pa.Array], pa.Array]:
    """Read lines with quotes one by one."""
    lines: list[list[str | None]] = []
    rows: list[int] = []
    for row, text in zip(texts.rows.to_pylist(), texts.values.to_pylist(), strict=True):
        try:
            lines.append(_fields(text, count))
            rows.append(row)
        except Unreadable as error:
            bad.append(error.at(row))
    arrays = [pa.array([line[at] for line in lines], pa.string()) for at in range(count)]
    return arrays, pa.array(rows, pa.int64())


def _fields(text: str, count: int) -> list[str | None]:
    found: list[str | None] = []
    at = 0
    while True:
        match = _FIELD.match(text, at)
        if match is None:
            raise Unreadable("InvalidCsv", f"the value is not a line of CSV: {shown(text)}")
        quoted, bare, end = match.groups()
        found.append((bare or None) if quoted is None else quoted.replace('""', '"'))
        at = match.end()
        if not end:
            break
    if len(found) != count:
        raise _wrong_number(len(found), count)
    return found


def _wrong_number(found: int, wanted: int) -> Unreadable:
    fields = f"{found} field" if found == 1 else f"{found} fields"
    return Unreadable("InvalidCsv", f"the line has {fields}, and {wanted} are declared")
