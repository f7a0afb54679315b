"""Texts of fields to values of their columns' types: those that JSON would read from a string.

Most texts are of a form for which a cast is known to give that value; rows with any other text are
read as JSON objects, which also says what is wrong with them.
"""

import json
from collections.abc import Sequence
from functools import lru_cache

import pyarrow as pa
import pyarrow.compute as pc

from kaflow_engine.duck import queries
from kaflow_engine.duck.quoting import literal
from kaflow_engine.formats.decoded import BadValue, Decoded, gathered, schema_of
from kaflow_engine.formats.json.decode import decode_json
from kaflow_engine.formats.pick import keep
from kaflow_engine.formats.temporal_texts import CLOCK, DAY
from kaflow_engine.formats.types import INTEGERS, Decimal, Scalar, parse_type
from kaflow_engine.model.columns import Column

_FORMS = {
    "BOOLEAN": "true|false",
    "DOUBLE": r"-?[0-9]{1,15}([.][0-9]{1,15})?",
    "DATE": DAY,
    "TIME": CLOCK,
    "TIMESTAMP": f"{DAY}[T ]{CLOCK}Z?",
}
"""Type → a pattern of texts that DuckDB casts to what JSON would read, or not at all."""


def typed(
    fields: Sequence[pa.Array], rows: pa.Array, columns: Sequence[Column], bad: Sequence[BadValue]
) -> Decoded:
    """Read the texts of lines.

    Args:
        fields: The texts of each column; null: NULL.
        rows: int64, the input row of each line, ascending.
        columns: As many as there are fields.
        bad: Why other input rows are none.
    """
    texts = pa.table(list(fields), [f"c{number}" for number in range(len(fields))])
    found = queries.query(_cast_sql(tuple(column.type for column in columns)), texts)
    sure = found.column("sure").combine_chunks()
    tables, places = [keep(found.drop_columns("sure"), sure)], [keep(rows, sure)]
    if not pc.all(sure).as_py():
        texts, rows = texts.filter(pc.invert(sure)), rows.filter(pc.invert(sure))
        objects = queries.query(_object_sql(columns), texts).column("v")
        doubtful = decode_json(objects, columns)
        tables.append(doubtful.table)
        places.append(rows.take(doubtful.good))
        bad = [*bad, *(BadValue(rows[b.row].as_py(), b.error, b.message) for b in doubtful.bad)]
    return gathered(tables, places, bad, schema_of(columns))


@lru_cache(maxsize=256)
def _cast_sql(types: Sequence[str]) -> str:
    casts = [f"TRY_CAST(c{number} AS {kind}) AS c{number}" for number, kind in enumerate(types)]
    sure = [
        f"(c{number} IS NULL OR ({form} AND TRY_CAST(c{number} AS {kind}) IS NOT NULL))"
        for number, kind in enumerate(types)
        if (form := _form(kind, f"c{number}")) is not None
    ]
    return f"SELECT {', '.join(casts)}, {' AND '.join(sure) or 'true'} AS sure FROM rows"


def _form(kind: str, text: str) -> str | None:
    """Return a condition under which a cast is right; None: it always is."""
    match parse_type(kind):
        case Scalar(name="VARCHAR"):
            return None
        case Scalar(name=name) if name in INTEGERS:
            pattern = "-?[0-9]{1,20}"
        case Scalar(name=name) if name in _FORMS:
            pattern = _FORMS[name]
        case Decimal(scale=scale):
            pattern = f"-?[0-9]{{1,38}}([.][0-9]{{0,{scale}}})?"
        case _:
            return "false"
    return f"regexp_full_match({text}, {literal(pattern)})"


def _object_sql(columns: Sequence[Column]) -> str:
    parts: list[str] = []
    for number, column in enumerate(columns):
        start = "," if number else "{"
        parts.append(literal(f"{start}{json.dumps(column.name, ensure_ascii=False)}:"))
        parts.append(f"coalesce(CAST(to_json(c{number}) AS VARCHAR), 'null')")
    return f"SELECT encode(concat({', '.join(parts)}, '}}')) AS v FROM rows"
