"""Decode JSON objects into columns.

Fields are found by name, case and all; of a repeated name the first counts; others are ignored. A
missing field and a JSON null are NULL. Numbers, booleans, objects and arrays are accepted for
VARCHAR as their JSON text, strings that spell a number or a boolean for those types. Whether a
value is good depends on it and the columns alone, never on its neighbours.
"""
# pyright: reportMissingTypeStubs=false, reportUnknownMemberType=false
# pyright: reportUnknownVariableType=false, reportUnknownArgumentType=false
# pyright: reportUnknownParameterType=false, reportAttributeAccessIssue=false
# pyarrow leaves types out

from collections.abc import Sequence
from dataclasses import dataclass

import pyarrow as pa
import pyarrow.compute as pc

from kaflow_engine.formats import duck
from kaflow_engine.formats.decoded import BadValue, Decoded, Unreadable, gathered, schema_of
from kaflow_engine.formats.json_exact import read_object
from kaflow_engine.formats.json_lanes import lane_sql, lanes_of
from kaflow_engine.model.columns import Column


@dataclass(frozen=True, slots=True)
class _Texts:
    values: pa.Array
    """string"""
    rows: pa.Array
    """int64: the input row of each value"""

    def where(self, mask: pa.Array) -> "_Texts":
        return _Texts(self.values.filter(mask), self.rows.filter(mask))


def decode_json(values: pa.Array | pa.ChunkedArray, columns: Sequence[Column]) -> Decoded:
    """Decode `values` (binary, none null), one JSON object each, into `columns`."""
    texts, bad = _texts(values)
    tables: list[pa.Table] = []
    rows: list[pa.Array] = []
    for lane in lanes_of(columns):
        if len(texts.values) == 0:
            break
        found = duck.query(lane_sql(columns, lane), rows=pa.table({"v": texts.values}))
        sure = found.column("sure").combine_chunks()
        tables.append(found.drop_columns("sure").filter(sure))
        rows.append(texts.rows.filter(sure))
        texts = texts.where(pc.invert(sure))
    schema = schema_of(columns)
    if len(texts.values):
        table, good, wrong = _one_by_one(texts, columns, schema)
        tables, rows, bad = [*tables, table], [*rows, good], bad + wrong
    return gathered(tables, rows, bad, schema)


def _texts(values: pa.Array | pa.ChunkedArray) -> tuple[_Texts, list[BadValue]]:
    array = values.combine_chunks() if isinstance(values, pa.ChunkedArray) else values
    texts = _Texts(array, pa.array(range(len(array)), pa.int64()))
    try:
        return _Texts(array.cast(pa.string()), texts.rows), []
    except pa.ArrowInvalid:
        reasons = enumerate(map(_not_text, array.to_pylist()))
        broken = {row: why for row, why in reasons if why}
    good = texts.where(pa.array([row not in broken for row in range(len(array))]))
    bad = [BadValue(row, "NotUtf8", why) for row, why in broken.items()]
    return _Texts(good.values.cast(pa.string()), good.rows), bad


def _not_text(value: bytes) -> str | None:
    try:
        value.decode()
    except UnicodeDecodeError as error:
        return f"the value is not UTF-8: byte {value[error.start]:#04x} at {error.start}"
    return None


def _one_by_one(
    texts: _Texts, columns: Sequence[Column], schema: pa.Schema
) -> tuple[pa.Table, pa.Array, list[BadValue]]:
    cells: list[list[object]] = []
    good: list[int] = []
    bad: list[BadValue] = []
    for row, text in zip(texts.rows.to_pylist(), texts.values.to_pylist(), strict=True):
        try:
            cells.append(read_object(text, columns))
            good.append(row)
        except Unreadable as error:
            bad.append(error.at(row))
    arrays = [
        pa.array([of[index] for of in cells], field.type) for index, field in enumerate(schema)
    ]
    names = [f"c{index}" for index in range(len(columns))]
    return pa.table(arrays, names), pa.array(good, pa.int64()), bad
