"""Decode JSON objects into columns.

Fields are found by name, case and all; of a repeated name the first counts; others are ignored. A
missing field and a JSON null are NULL. Numbers, booleans, objects and arrays are accepted for
VARCHAR as their JSON text, strings that spell a number or a boolean for those types. Whether a
value is good depends on it and the columns alone, never on its neighbours.
"""

from collections.abc import Sequence

import duckdb
import pyarrow as pa
import pyarrow.compute as pc

from kaflow_engine.duck import queries
from kaflow_engine.formats.decoded import (
    BadValue,
    Decoded,
    Unreadable,
    array_of,
    gathered,
    schema_of,
)
from kaflow_engine.formats.json.bulk import LaneSql, lane_sql, lanes_of
from kaflow_engine.formats.json.reference import read_object
from kaflow_engine.formats.pick import keep
from kaflow_engine.formats.text import Texts, texts_of
from kaflow_engine.model.columns import Column

FEW = 100
"""So few texts are read one by one: to prepare the SQL of a lane costs as much as 200 texts."""


def decode_json(values: pa.Array | pa.ChunkedArray, columns: Sequence[Column]) -> Decoded:
    """Decode `values` (binary, none null), one JSON object each, into `columns`."""
    texts, bad = texts_of(values)
    tables: list[pa.Table] = []
    rows: list[pa.Array] = []
    doubtful: list[Texts] = []
    for lane in lanes_of(columns):
        if len(texts.values) <= FEW:
            break
        found, texts, broken = _in_lane(lane_sql(tuple(columns), lane), texts)
        doubtful += broken
        sure = found.column("sure").combine_chunks()
        tables.append(keep(found.drop_columns("sure"), sure))
        rows.append(keep(texts.rows, sure))
        texts = texts.keep(pc.invert(sure))
    schema = schema_of(columns)
    for some in (*doubtful, texts):
        if len(some.values):
            table, good, wrong = _one_by_one(some, columns)
            tables, rows, bad = [*tables, table], [*rows, good], bad + wrong
    return gathered(tables, rows, bad, schema)


def _in_lane(sql: LaneSql, texts: Texts) -> tuple[pa.Table, Texts, list[Texts]]:
    """Run a lane over texts; where one is no JSON at all, without those, which are returned too.

    One broken text would make DuckDB look at two thousand of them one after the other.
    """
    try:
        return queries.query(sql.bold, rows=pa.table({"v": texts.values})), texts, []
    except duckdb.InvalidInputException:
        table = pa.table({"v": texts.values})
        valid = queries.query("SELECT json_valid(v) AS ok FROM rows", rows=table).column("ok")
        mask = valid.combine_chunks()
    broken, texts = texts.keep(pc.invert(mask)), texts.keep(mask)
    return queries.query(sql.careful, rows=pa.table({"v": texts.values})), texts, [broken]


def _one_by_one(
    texts: Texts, columns: Sequence[Column]
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
        array_of([of[index] for of in cells], column.type) for index, column in enumerate(columns)
    ]
    names = [f"c{index}" for index in range(len(columns))]
    return pa.table(arrays, names), pa.array(good, pa.int64()), bad
