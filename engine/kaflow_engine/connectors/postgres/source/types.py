"""Types of PostgreSQL as those of columns here, and the SQL with which a value becomes JSON."""

import re

from kaflow_engine.duck.quoting import identifier
from kaflow_engine.duck.wide.integers import BIGNUM, DIGITS

_TYPES = {
    "smallint": "SMALLINT",
    "integer": "INTEGER",
    "bigint": "BIGINT",
    "oid": "BIGINT",
    "real": "FLOAT",
    "double precision": "DOUBLE",
    "boolean": "BOOLEAN",
    "text": "VARCHAR",
    "character varying": "VARCHAR",
    "character": "VARCHAR",
    '"char"': "VARCHAR",
    "name": "VARCHAR",
    "citext": "VARCHAR",
    "xml": "VARCHAR",
    "inet": "VARCHAR",
    "cidr": "VARCHAR",
    "macaddr": "VARCHAR",
    "macaddr8": "VARCHAR",
    "interval": "VARCHAR",
    "uuid": "UUID",
    "date": "DATE",
    "time without time zone": "TIME",
    "timestamp without time zone": "TIMESTAMP",
    "timestamp with time zone": "TIMESTAMP WITH TIME ZONE",
    "json": "JSON",
    "jsonb": "JSON",
    "bytea": "BLOB",
}
"""An interval is text: months have no one length. A timestamp with a zone is an instant."""
_DIGITS = re.compile(r"numeric\((\d+),(\d+)\)")
_MOST_DIGITS = 38


def read_as(kind: str, is_enum: bool = False) -> str | None:
    """Return the type of a column for values of a Postgres type; None: there is none.

    >>> read_as("character varying(20)"), read_as("numeric(9,2)"), read_as("numeric")
    ('VARCHAR', 'DECIMAL(9,2)', None)
    >>> read_as("timestamp(3) with time zone[]"), read_as("mood", is_enum=True), read_as("point")
    ('TIMESTAMP WITH TIME ZONE[]', 'VARCHAR', None)
    >>> read_as("numeric(78,0)"), read_as("numeric(78,2)")
    ('BIGNUM', None)
    >>> read_as("json[]"), read_as("bytea[]")
    ('JSON', None)
    """
    if kind.endswith("[]"):
        element = read_as(kind[:-2], is_enum)
        if element == "JSON":
            return "JSON"
        return None if element in (None, "BLOB") else f"{element}[]"
    if is_enum:
        return "VARCHAR"
    if found := _DIGITS.fullmatch(kind):
        width, scale = int(found[1]), int(found[2])
        if not scale and _MOST_DIGITS < width <= DIGITS:
            return BIGNUM
        return f"DECIMAL({width},{scale})" if scale <= width <= _MOST_DIGITS else None
    plain = re.sub(r"\(\d+\)", "", kind)
    return _TYPES.get(plain) or _TYPES.get(plain.rpartition(".")[2])


def way_out(name: str, kind: str) -> str:
    """Return what helps with a column that has no type here."""
    number = kind.removesuffix("[]").startswith("numeric")
    other = "DECIMAL(38,9)" if number else "VARCHAR"
    other += "[]" if number and kind.endswith("[]") else ""
    return (
        f"declare under `columns` what is read of the table: without {name}, or with {name}: "
        f"{other}, which takes {'numbers of so many digits' if number else 'its text'}"
    )


def json_sql(table: str, name: str, kind: str) -> str:
    """Return SQL for a value as `row_to_json` writes it, called as its column.

    >>> json_sql("t", "a", "integer")
    't."a"'
    """
    value = f"{table}.{identifier(name)}"
    if kind == "bytea":
        return f"translate(encode({value}, 'base64'), E'\\n', '') AS {identifier(name)}"
    return value
