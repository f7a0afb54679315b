"""What values are to a script: of each type how its text comes in, and what goes out.

| DuckDB | in | out |
|---|---|---|
| BOOLEAN | boolean | boolean |
| integers, to U256 and I256 | number, a BigInt beyond 2^53 | whole number, BigInt, text of digits |
| FLOAT, DOUBLE | number | number, BigInt, text of a number |
| DECIMAL of up to 15 digits | number | number, BigInt, text of a number |
| DECIMAL of more | text | as above |
| VARCHAR | text | text, number, boolean, BigInt, Date |
| TIMESTAMP | text, ISO 8601 in UTC | text, Date |
| JSON | text | text, or whatever JSON.stringify takes |
| DATE, TIME, UUID, INTERVAL and others | text as DuckDB writes it | text |
| BLOB | text, base64 | text, base64 |
| lists | array | array |
| STRUCT | object | object |
| MAP | Map | Map, object |
"""

from collections.abc import Mapping
from typing import Any

from duckdb import sqltypes

from kaflow_engine.duck.wide.integers import in_duckdb

_WHOLE = {
    *("tinyint", "smallint", "integer", "bigint", "hugeint", "bignum"),
    *("utinyint", "usmallint", "uinteger", "ubigint", "uhugeint"),
}
_TIMESTAMPS = {"timestamp", "timestamp_s", "timestamp_ms", "timestamp_ns"}
EXACT_DIGITS = 15
"""So many digits of a DECIMAL survive as a number."""


def codec_of(name: str, type_name: str) -> Mapping[str, Any]:
    """Return how a column of a type goes in and out, as `rows.js` reads it."""
    return {"key": name, **_codec(sqltypes.DuckDBPyType(in_duckdb(type_name)))}


def _codec(kind: sqltypes.DuckDBPyType) -> dict[str, Any]:
    name = str(kind)
    match kind.id:
        case "list" | "array":
            return {"kind": "list", "name": "list", "of": _codec(_children(kind)[0][1])}
        case "struct":
            fields = [{"key": key, **_codec(child)} for key, child in _children(kind)]
            return {"kind": "struct", "name": "object", "of": fields}
        case "map":
            return {"kind": "map", "name": "map", "of": [_codec(c) for _, c in _children(kind)]}
        case _:
            return {"kind": _leaf(kind, name), "name": name}


def _leaf(kind: sqltypes.DuckDBPyType, name: str) -> str:
    if name == "JSON":
        return "json"
    if kind.id in _WHOLE:
        return "whole"
    if kind.id in ("float", "double"):
        return "number"
    if kind.id == "decimal":
        digits = next(value for key, value in kind.children if key == "precision")
        return "number" if isinstance(digits, int) and digits <= EXACT_DIGITS else "decimal"
    if kind.id == "boolean":
        return "boolean"
    if kind.id == "varchar":
        return "text"
    if kind.id in _TIMESTAMPS or kind.id == "timestamp with time zone":
        return "timestamp"
    return "written"


def _children(kind: sqltypes.DuckDBPyType) -> list[tuple[str, sqltypes.DuckDBPyType]]:
    return [(n, child) for n, child in kind.children if isinstance(child, sqltypes.DuckDBPyType)]
