"""Types of ClickHouse as those of columns here, and the SQL of keys as texts and back."""

import re

from kaflow_engine.connectors.clickhouse.names import name, text
from kaflow_engine.connectors.clickhouse.types import field_of, parts_of
from kaflow_engine.duck.quoting import identifier
from kaflow_engine.duck.wide.integers import in_duckdb

_TYPES = {
    "Bool": "BOOLEAN",
    "Int8": "TINYINT",
    "Int16": "SMALLINT",
    "Int32": "INTEGER",
    "Int64": "BIGINT",
    "Int128": "HUGEINT",
    "Int256": "I256",
    "UInt8": "UTINYINT",
    "UInt16": "USMALLINT",
    "UInt32": "UINTEGER",
    "UInt64": "UBIGINT",
    "UInt128": "UHUGEINT",
    "UInt256": "U256",
    "Float32": "FLOAT",
    "Float64": "DOUBLE",
    "String": "VARCHAR",
    "FixedString": "VARCHAR",
    "Enum8": "VARCHAR",
    "Enum16": "VARCHAR",
    "IPv4": "VARCHAR",
    "IPv6": "VARCHAR",
    "UUID": "UUID",
    "Date": "DATE",
    "Date32": "DATE",
    "DateTime": "TIMESTAMP WITH TIME ZONE",
    "JSON": "JSON",
}
"""A DateTime is an instant: its zone says how it is shown."""
_MOST_DIGITS, _MICROS = 38, 6


def read_as(kind: str) -> str | None:
    """Return the type of a column for values of a ClickHouse type; None: there is none.

    >>> read_as("LowCardinality(Nullable(String))"), read_as("Decimal(9, 2)")
    ('VARCHAR', 'DECIMAL(9,2)')
    >>> read_as("DateTime64(3, 'Europe/Berlin')"), read_as("DateTime64(9)"), read_as("Int256")
    ('TIMESTAMP WITH TIME ZONE', None, 'I256')
    >>> read_as("Map(String, Array(Int8))"), read_as("Tuple(a Int8, b String)")
    ('MAP(VARCHAR, TINYINT[])', 'STRUCT("a" TINYINT, "b" VARCHAR)')
    >>> read_as("Tuple(Int8, String)"), read_as("SimpleAggregateFunction(sum, UInt64)")
    (None, 'UBIGINT')
    """
    plain, parts = parts_of(kind)
    if plain == "SimpleAggregateFunction":
        return read_as(parts[1])
    if plain == "Array":
        element = _inside(parts[0])
        return element and f"{element}[]"
    if plain == "Map":
        both = [_inside(part) for part in parts]
        return None if None in both else f"MAP({both[0]}, {both[1]})"
    if plain == "Tuple":
        fields = [(called, _inside(each)) for called, each in map(field_of, parts)]
        if any(not called or each is None for called, each in fields):
            return None
        return f"STRUCT({', '.join(f'{identifier(called)} {each}' for called, each in fields)})"
    if plain == "Decimal":
        width, scale = (int(part) for part in parts)
        return f"DECIMAL({width},{scale})" if width <= _MOST_DIGITS else None
    if plain == "DateTime64":
        return _TYPES["DateTime"] if int(parts[0]) <= _MICROS else None
    return _TYPES.get(plain)


def _inside(kind: str) -> str | None:
    """Return the type of a part; U256 and I256 are types of columns, and BIGNUM holds both."""
    found = read_as(kind)
    return None if found is None else in_duckdb(found)


def way_out(column: str) -> str:
    """Return what helps with a column that has no type here."""
    return (
        f"declare under `columns` what is read of the table: without {column}, or with {column}: "
        "VARCHAR, which takes its text"
    )


def value_sql(column: str, kind: str, wanted: str) -> str:
    """Return SQL for a value as JSON can carry it, called as its column.

    >>> value_sql("a", "String", "BLOB"), value_sql("a", "String", "VARCHAR")
    ('base64Encode(`a`) AS `a`', '`a`')
    >>> value_sql("a", "Tuple(Int8, String)", "VARCHAR")
    'toString(`a`) AS `a`'
    """
    if wanted.upper() in ("BLOB", "BYTEA") and parts_of(kind)[0] in ("String", "FixedString"):
        return f"base64Encode({name(column)}) AS {name(column)}"
    if wanted.upper() in ("VARCHAR", "TEXT", "STRING") and read_as(kind) is None:
        return f"toString({name(column)}) AS {name(column)}"
    return name(column)


def key_text(sql: str, kind: str) -> str:
    """Return SQL for a value of a key as a text, from which `key_value` makes it again."""
    plain, _ = parts_of(kind)
    if plain in ("String", "FixedString"):
        return f"hex({sql})"
    if plain.startswith("DateTime"):
        return f"toString(toTimeZone({sql}, 'UTC'))"
    return f"toString({sql})"


def key_value(said: str, kind: str) -> str:
    """Return SQL for a value of a key that `key_text` has given.

    >>> key_value("6162", "String"), key_value("7", "LowCardinality(UInt64)")
    ("unhex('6162')", "CAST('7' AS UInt64)")
    >>> key_value("2026-01-01 00:00:00.5", "DateTime64(1, 'Europe/Berlin')")
    "toDateTime64('2026-01-01 00:00:00.5', 1, 'UTC')"
    """
    plain, parts = parts_of(kind)
    if plain == "String":
        return f"unhex({text(said)})"
    if plain == "FixedString":
        return f"toFixedString(unhex({text(said)}), {parts[0]})"
    if plain == "DateTime":
        return f"toDateTime({text(said)}, 'UTC')"
    if plain == "DateTime64":
        return f"toDateTime64({text(said)}, {parts[0]}, 'UTC')"
    inside = re.fullmatch(r"LowCardinality\((.*)\)", kind)
    return f"CAST({text(said)} AS {inside[1] if inside else kind})"
