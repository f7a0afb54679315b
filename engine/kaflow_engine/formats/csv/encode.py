"""SQL that writes rows as lines of CSV (RFC 4180), without an end of line.

NULL is an empty field, an empty text is `""`. Fields with a comma, a quote or an end of line are
quoted. Values are written as in JSON, without the quotes that JSON needs around texts: times as
`2026-01-01T01:02:03.5Z`, BLOB as base64, NaN and infinities as NULL.
"""

from collections.abc import Sequence

from kaflow_engine.formats.json.encode import plain_text_sql
from kaflow_engine.formats.types import INTEGERS, Decimal, Scalar, parse_type
from kaflow_engine.model.columns import Column

_BARE = frozenset({"BOOLEAN", "DOUBLE", "FLOAT", "DATE", "TIME", "UUID", "BLOB"})
"""What is written with these never needs quotes."""


def csv_line_sql(columns: Sequence[tuple[Column, str]]) -> str:
    """Return a VARCHAR expression: one line from (column, SQL of its value) pairs."""
    fields = [f"coalesce({_field(column, sql)}, '')" for column, sql in columns]
    comma = ", ',', "
    return f"concat({comma.join(fields)})"


def _field(column: Column, sql: str) -> str:
    kind = parse_type(column.type)
    assert isinstance(kind, Scalar | Decimal)
    text = plain_text_sql(kind, sql)
    if isinstance(kind, Decimal) or kind.name in INTEGERS or kind.name in _BARE:
        return text
    quoted = f"""'"' || replace({text}, '"', '""') || '"'"""
    special = rf"""({text}) = '' OR regexp_matches({text}, '[",\r\n]')"""
    return f"CASE WHEN {special} THEN {quoted} ELSE {text} END"
