"""Columns to text and back, exactly: how rows travel and rest.

A row is a JSON list with one text (or null) a column. Flat types are DuckDB's own text, BLOB is
base64, nested types are JSON whose leaves are texts.
"""

from collections.abc import Iterable, Sequence
from functools import lru_cache

from duckdb import sqltypes

from kaflow_engine.duck.quoting import identifier, literal
from kaflow_engine.duck.wide.integers import in_duckdb
from kaflow_engine.model.columns import Column

LIST = """'["VARCHAR"]'"""
_NESTED = {"list", "array", "struct", "map"}


def to_text(sql: str, type_name: str) -> str:
    """Return SQL for the text of a value of a type."""
    kind = _type(type_name)
    if kind.id in _NESTED:
        return f"CAST(to_json({_texts(sql, kind)}) AS VARCHAR)"
    return _leaf_text(sql, kind)


def from_text(sql: str, type_name: str) -> str:
    """Return SQL for the value behind its text."""
    kind = _type(type_name)
    if kind.id in _NESTED:
        return _value(f"from_json({sql}, {literal(_structure(kind))})", kind, "v")
    return _leaf_value(sql, kind)


def pack(texts: Iterable[str]) -> str:
    """Return SQL for a row of texts as one JSON text."""
    inside = ", ".join(texts)
    return f"CAST(to_json([{inside}]::VARCHAR[]) AS VARCHAR)"


def unpack(sql: str) -> str:
    """Return SQL for the list of texts in a packed row; NULL stays NULL."""
    return f"from_json({sql}, {LIST})"


def columns_of(packed: str, columns: Sequence[Column], prefix: str = "") -> list[str]:
    """Return `value AS "name"` for each column of an unpacked list."""
    return [
        f"{from_text(f'{packed}[{i}]', column.type)} AS {identifier(prefix + column.name)}"
        for i, column in enumerate(columns, 1)
    ]


@lru_cache(maxsize=1024)
def _type(name: str) -> sqltypes.DuckDBPyType:
    return sqltypes.DuckDBPyType(in_duckdb(name))


def _leaf_text(sql: str, kind: sqltypes.DuckDBPyType) -> str:
    return f"to_base64({sql})" if kind.id == "blob" else f"CAST({sql} AS VARCHAR)"


def _leaf_value(sql: str, kind: sqltypes.DuckDBPyType) -> str:
    if kind.id == "blob":
        return f"from_base64({sql})"
    return sql if str(kind) == "VARCHAR" else f"CAST({sql} AS {kind})"


def _children(kind: sqltypes.DuckDBPyType) -> list[tuple[str, sqltypes.DuckDBPyType]]:
    return [
        (name, child) for name, child in kind.children if isinstance(child, sqltypes.DuckDBPyType)
    ]


def _texts(sql: str, kind: sqltypes.DuckDBPyType, depth: int = 0) -> str:
    """Return SQL for the same nesting with text leaves."""
    inner = f"v{depth}"
    match kind.id:
        case "list" | "array":
            child = _children(kind)[0][1]
            return f"list_transform({sql}, lambda {inner}: {_texts(inner, child, depth + 1)})"
        case "struct":
            fields = ", ".join(
                f"{identifier(name)} := {_texts(f'{sql}.{identifier(name)}', child, depth)}"
                for name, child in _children(kind)
            )
            return f"CASE WHEN {sql} IS NOT NULL THEN struct_pack({fields}) END"
        case "map":
            key, value = (child for _, child in _children(kind))
            return (
                f"list_transform(map_entries({sql}), lambda {inner}: struct_pack("
                f"k := {_texts(f'{inner}.key', key, depth + 1)}, "
                f"v := {_texts(f'{inner}.value', value, depth + 1)}))"
            )
        case _:
            return _leaf_text(sql, kind)


def _structure(kind: sqltypes.DuckDBPyType) -> str:
    match kind.id:
        case "list" | "array":
            return f"[{_structure(_children(kind)[0][1])}]"
        case "struct":
            fields = ", ".join(
                f"{_json_name(name)}: {_structure(child)}" for name, child in _children(kind)
            )
            return f"{{{fields}}}"
        case "map":
            key, value = (child for _, child in _children(kind))
            return f'[{{"k": {_structure(key)}, "v": {_structure(value)}}}]'
        case _:
            return '"VARCHAR"'


def _json_name(name: str) -> str:
    return '"' + name.replace("\\", "\\\\").replace('"', '\\"') + '"'


def _value(sql: str, kind: sqltypes.DuckDBPyType, name: str) -> str:
    match kind.id:
        case "list" | "array":
            inner = f"{name}0"
            child = _children(kind)[0][1]
            made = f"list_transform({sql}, lambda {inner}: {_value(inner, child, inner)})"
            return f"CAST({made} AS {kind})"
        case "struct":
            fields = ", ".join(
                f"{identifier(field)} := {_value(f'{sql}.{identifier(field)}', child, name)}"
                for field, child in _children(kind)
            )
            return f"CASE WHEN {sql} IS NOT NULL THEN struct_pack({fields}) END"
        case "map":
            key, value = (child for _, child in _children(kind))
            inner = f"{name}0"
            pair = (
                f"struct_pack(k := {_value(f'{inner}.k', key, inner)}, "
                f"v := {_value(f'{inner}.v', value, inner)})"
            )
            return (
                f"CAST(map_from_entries(list_transform({sql}, lambda {inner}: {pair})) AS {kind})"
            )
        case _:
            return _leaf_value(sql, kind)
