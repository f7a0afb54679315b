"""Types of DuckDB in PostgreSQL: what a column is created as, which columns hold it without loss,
and the text of a value for COPY."""

import re
from collections.abc import Sequence

from kaflow_engine.connectors.contract import Unfit
from kaflow_engine.duck.wide.integers import BIGNUM, DIGITS
from kaflow_engine.model.columns import Column

_INTEGERS = ("smallint", "integer", "bigint", "numeric")
_TYPES: dict[str, tuple[str, ...]] = {
    "BOOLEAN": ("boolean",),
    "TINYINT": _INTEGERS,
    "UTINYINT": _INTEGERS,
    "SMALLINT": _INTEGERS,
    "USMALLINT": _INTEGERS[1:],
    "INTEGER": _INTEGERS[1:],
    "UINTEGER": _INTEGERS[2:],
    "BIGINT": _INTEGERS[2:],
    "UBIGINT": ("numeric(20,0)", "numeric"),
    "HUGEINT": ("numeric(39,0)", "numeric"),
    "UHUGEINT": ("numeric(39,0)", "numeric"),
    BIGNUM: ("numeric(78,0)", "numeric"),
    "FLOAT": ("real",),
    "DOUBLE": ("double precision",),
    "VARCHAR": ("text", "character varying"),
    "BLOB": ("bytea",),
    "DATE": ("date",),
    "TIME": ("time without time zone",),
    "TIMESTAMP": ("timestamp without time zone",),
    "TIMESTAMP_S": ("timestamp without time zone",),
    "TIMESTAMP_MS": ("timestamp without time zone",),
    "TIMESTAMP WITH TIME ZONE": ("timestamp with time zone",),
    "UUID": ("uuid",),
    "INTERVAL": ("interval",),
    "JSON": ("jsonb", "json"),
}
"""Type → the column that is created, then others that hold every value of it."""
_DECIMAL = re.compile(r"DECIMAL\((\d+),(\d+)\)")
_NUMERIC = re.compile(r"numeric\((\d+),(\d+)\)")
_ERAS = ("DATE", "TIMESTAMP", "TIMESTAMP_S", "TIMESTAMP_MS", "TIMESTAMP WITH TIME ZONE")
_ESCAPES = (("\\", "\\\\"), ("\t", "\\t"), ("\n", "\\n"), ("\r", "\\r"))
LONGEST = 63
"""Bytes of a name; longer ones would be cut."""


def unfit(columns: Sequence[Column]) -> list[Unfit]:
    """Return what no table can keep as it is."""
    found: list[Unfit] = []
    for column in columns:
        name, kind = column.name, column.type
        if len(name.encode()) > LONGEST or "\x00" in name:
            why = f"Postgres takes names of {LONGEST} bytes at most, and '{name}' is longer"
            found.append(Unfit(why=why, hint="select it under another name"))
        elif kind == "TIMESTAMP_NS":
            why = f"Postgres keeps microseconds, and column '{name}' is {kind}"
            found.append(Unfit(why=why, hint=f"write CAST({name} AS TIMESTAMP) AS {name}"))
        elif created_as(kind) is None:
            why = f"Postgres has no type for column '{name}': it is {kind}"
            found.append(Unfit(why=why, hint=f"write to_json({name}) AS {name}: it is jsonb there"))
    return found


def created_as(kind: str) -> str | None:
    """Return the type of a column for values of a DuckDB type; None: there is none.

    >>> created_as("DECIMAL(9,2)"), created_as("ENUM('a', 'b')"), created_as("INTEGER[]")
    ('numeric(9,2)', 'text', None)
    """
    if kind.endswith("]"):
        return None
    if found := _DECIMAL.fullmatch(kind):
        return f"numeric({found[1]},{found[2]})"
    if kind.startswith("ENUM("):
        return "text"
    return _TYPES[kind][0] if kind in _TYPES else None


def holds(column: str, kind: str) -> bool:
    """Tell whether a column of a Postgres type holds every value of a DuckDB type.

    >>> holds("bigint", "INTEGER"), holds("integer", "BIGINT"), holds("text", "INTEGER")
    (True, False, False)
    >>> holds("numeric(12,3)", "DECIMAL(9,2)"), holds("numeric(9,3)", "DECIMAL(9,2)")
    (True, False)
    """
    if found := _DECIMAL.fullmatch(f"DECIMAL({DIGITS},0)" if kind == BIGNUM else kind):
        width, scale = int(found[1]), int(found[2])
        if column == "numeric":
            return True
        own = _NUMERIC.fullmatch(column)
        return own is not None and (
            int(own[2]) >= scale and int(own[1]) - int(own[2]) >= width - scale
        )
    accepted = _TYPES.get("VARCHAR" if kind.startswith("ENUM(") else kind, ())
    return column in accepted


def copy_text(sql: str, kind: str) -> str:
    """Return SQL for the text of a value as COPY reads it, NULL as `\\N`."""
    if kind == "BLOB":
        text = f"'\\\\x' || lower(hex({sql}))"
    else:
        text = f"CAST({sql} AS VARCHAR)"
        if kind in _ERAS:
            text = f"replace({text}, ' (BC)', ' BC')"
        elif kind in ("VARCHAR", "JSON") or kind.startswith("ENUM("):
            for plain, escaped in _ESCAPES:
                text = f"replace({text}, {_chr(plain)}, {_chr(escaped)})"
    return f"coalesce({text}, '\\N')"


def _chr(text: str) -> str:
    return " || ".join(f"chr({ord(letter)})" for letter in text)


def row_text(values: Sequence[tuple[str, str]]) -> str:
    """Return SQL for a row as a line of COPY, without its end, of SQL of values and their types."""
    texts = ", ".join(copy_text(sql, kind) for sql, kind in values)
    return f"concat_ws(chr(9), {texts})"
