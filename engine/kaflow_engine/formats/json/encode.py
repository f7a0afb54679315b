"""SQL that writes rows as JSON objects.

Fields stand in query order, without spaces. Integers and DECIMAL are written digit by digit (1.10
stays 1.10), DOUBLE and FLOAT with the fewest digits that read back the same, timestamps as
`2026-01-01T01:02:03.5Z`: no fraction when it is zero, else without zeros at its end. NaN and
infinities, of numbers and of time, are null.
"""

import json
from collections.abc import Sequence
from typing import assert_never

from kaflow_engine.duck import quoting
from kaflow_engine.formats.types import (
    INTEGERS,
    Decimal,
    List,
    Map,
    Scalar,
    Struct,
    Type,
    parse_type,
)
from kaflow_engine.model.columns import Column

_CLOSE = "'}'"
_INSTANTS = frozenset(
    {"TIMESTAMP", "TIMESTAMP_S", "TIMESTAMP_MS", "TIMESTAMP_NS", "TIMESTAMP WITH TIME ZONE"}
)

_AS_IT_IS = frozenset(
    Scalar(name)
    for name in ("VARCHAR", "BOOLEAN", "DOUBLE", "TINYINT", "SMALLINT", "INTEGER", "BIGINT")
)
_PLAIN = frozenset({"BLOB", "DATE", "TIME", "UUID"})  # text that needs no escapes


def json_object_sql(columns: Sequence[tuple[Column, str]]) -> str:
    """Return a VARCHAR expression: one JSON object from (column, SQL of its value) pairs."""
    fields = [(column.name, parse_type(column.type), sql) for column, sql in columns]
    names = {
        name.casefold() for name, _, _ in fields
    }  # struct_pack rejects names that differ only in case
    if fields and len(names) == len(fields) and all(kind in _AS_IT_IS for _, kind, _ in fields):
        return _at_once(fields)
    return _object(fields, 0)


def _at_once(fields: Sequence[tuple[str, Type, str]]) -> str:
    """Return the same as `_object` for types that DuckDB itself writes right, in fewer steps."""
    values = (
        f"CASE WHEN isfinite({sql}) THEN {sql} END" if kind == Scalar("DOUBLE") else f"({sql})"
        for _, kind, sql in fields
    )
    packed = ", ".join(
        f"{quoting.identifier(name)} := {value}"
        for (name, _, _), value in zip(fields, values, strict=True)
    )
    return f"CAST(to_json(struct_pack({packed})) AS VARCHAR)"


def spaced_object_sql(columns: Sequence[tuple[Column, str]]) -> str:
    """Return the same with a space behind each comma and colon that stands between values."""
    fields = [(column.name, parse_type(column.type), sql) for column, sql in columns]
    return _object(fields, 0, " ")


def json_value_sql(kind: str, sql: str) -> str:
    """Return a VARCHAR expression: a value of a DuckDB type as JSON; NULL for NULL."""
    return _value(parse_type(kind), sql, 0)


def plain_text_sql(kind: Scalar | Decimal, sql: str) -> str:
    """Return a VARCHAR expression of a value without parts, as it stands between JSON's quotes.

    NULL for NULL and for what JSON writes as null.
    """
    if isinstance(kind, Decimal):
        return _value(kind, sql, 0)
    if kind.name in ("DOUBLE", "FLOAT"):
        return _scalar(kind.name, sql)
    return _text(kind.name, sql)


def _object(fields: Sequence[tuple[str, Type, str]], depth: int, gap: str = "") -> str:
    parts: list[str] = []
    for index, (name, kind, sql) in enumerate(fields):
        start = f",{gap}" if index else "{"
        parts.append(quoting.literal(f"{start}{json.dumps(name, ensure_ascii=False)}:{gap}"))
        parts.append(f"coalesce({_value(kind, sql, depth, gap)}, 'null')")
    return f"concat({', '.join([*parts, _CLOSE])})" if parts else "'{}'"


def _value(kind: Type, sql: str, depth: int, gap: str = "") -> str:
    """SQL of a value as JSON text; NULL where JSON says null."""
    each = f"x{depth}"
    match kind:
        case Scalar(name=name):
            return _scalar(name, sql)
        case Decimal():
            text = f"CAST({sql} AS VARCHAR)"
            if kind.precision > kind.scale:
                return text
            return rf"regexp_replace({text}, '^(-?)\.', '\10.')"  # DuckDB writes 0.5 as `.5` here
        case List(element=element):
            item = f"coalesce({_value(element, each, depth + 1, gap)}, 'null')"
            items = f"list_transform({sql}, lambda {each}: {item})"
            return f"('[' || array_to_string({items}, ',{gap}') || ']')"
        case Struct(fields=fields):
            inner = [(name, of, f"({sql}).{quoting.identifier(name)}") for name, of in fields]
            return f"(CASE WHEN ({sql}) IS NOT NULL THEN {_object(inner, depth, gap)} END)"
        case Map(key=key, value=value):
            item = (
                f"{_key(key, f'{each}.key')} || ':{gap}' || "
                f"coalesce({_value(value, f'{each}.value', depth + 1, gap)}, 'null')"
            )
            entries = f"list_transform(map_entries({sql}), lambda {each}: {item})"
            return f"('{{' || array_to_string({entries}, ',{gap}') || '}}')"
        case _:
            assert_never(kind)


def _scalar(name: str, sql: str) -> str:
    if name in INTEGERS or name in ("BOOLEAN", "JSON"):
        return f"CAST({sql} AS VARCHAR)"
    match name:
        case "VARCHAR":
            return f"CAST(to_json({sql}) AS VARCHAR)"
        case "DOUBLE":
            return f"CASE WHEN isfinite({sql}) THEN CAST(to_json({sql}) AS VARCHAR) END"
        case "FLOAT":
            # to_json would write the digits of the double that the float becomes
            return f"CASE WHEN isfinite({sql}) THEN CAST({sql} AS VARCHAR) END"
        case _ if name in _PLAIN or name in _INSTANTS:
            return f"('\"' || {_text(name, sql)} || '\"')"
        case _:
            return f"CAST(to_json({_text(name, sql)}) AS VARCHAR)"


def _key(kind: Type, sql: str) -> str:
    text = _text(kind.name, sql) if isinstance(kind, Scalar) else f"CAST({sql} AS VARCHAR)"
    return f"CAST(to_json({text}) AS VARCHAR)"


def _text(name: str, sql: str) -> str:
    """SQL of a scalar as plain text; NULL for an infinite time."""
    match name:
        case "BLOB":
            return f"to_base64({sql})"
        case "DATE":
            return f"CASE WHEN isfinite({sql}) THEN CAST({sql} AS VARCHAR) END"
        case "TIMESTAMP WITH TIME ZONE":
            # independent of the session's time zone, which a cast to TIMESTAMP is not
            return _text("TIMESTAMP", f"make_timestamp(epoch_us({sql}))")
        case _ if name in _INSTANTS:
            iso = f"replace(CAST({sql} AS VARCHAR), ' ', 'T') || 'Z'"
            return f"CASE WHEN isfinite({sql}) THEN {iso} END"
        case _:
            return f"CAST({sql} AS VARCHAR)"
