"""Declared types of SQLite as those of columns here, and values of SQLite as JSON and back."""

import json
import re
from base64 import b64encode
from decimal import Decimal
from math import isinf

from kaflow_engine.connectors.attached.values import text_as_json

_TYPES = {
    "DATE": "DATE",
    "TIME": "TIME",
    "DATETIME": "TIMESTAMP",
    "TIMESTAMP": "TIMESTAMP",
    "TIMESTAMP WITH TIME ZONE": "TIMESTAMP WITH TIME ZONE",
    "TIMESTAMPTZ": "TIMESTAMP WITH TIME ZONE",
    "BOOL": "BOOLEAN",
    "BOOLEAN": "BOOLEAN",
    "UUID": "UUID",
    "JSON": "JSON",
}
"""SQLite keeps any word for a type, and gives these none of its own."""
_OF_AFFINITIES = {"INTEGER": "BIGINT", "TEXT": "VARCHAR", "BLOB": "BLOB", "REAL": "DOUBLE"}
_AFFINITIES = (
    ("INTEGER", ("INT",)),
    ("TEXT", ("CHAR", "CLOB", "TEXT")),
    ("BLOB", ("BLOB",)),
    ("REAL", ("REAL", "FLOA", "DOUB")),
)
_DIGITS = re.compile(r"(?:DECIMAL|NUMERIC) ?\( ?(\d+) ?(?:, ?(\d+) ?)?\)")
_MOST_DIGITS, _MOST = 38, 2**63
_FLOATS = ("FLOAT", "DOUBLE")


def affinity(declared: str) -> str:
    """Return what SQLite makes of values in a column, by its rules for the declared type.

    >>> affinity("varchar(20)"), affinity("UNSIGNED BIG INT"), affinity(""), affinity("DECIMAL")
    ('TEXT', 'INTEGER', 'BLOB', 'NUMERIC')
    """
    kind = declared.upper()
    if not kind:
        return "BLOB"
    of = (name for name, words in _AFFINITIES if any(word in kind for word in words))
    return next(of, "NUMERIC")


def read_as(declared: str) -> str | None:
    """Return the type of a column for values of a declared type; None: there is none.

    >>> read_as("Varchar(20)"), read_as("decimal(9, 2)"), read_as("INT8"), read_as("datetime")
    ('VARCHAR', 'DECIMAL(9,2)', 'BIGINT', 'TIMESTAMP')
    >>> read_as(""), read_as("NUMERIC"), read_as("STRING"), read_as("DECIMAL(99)")
    (None, None, None, None)
    """
    kind = " ".join(declared.upper().split())
    if found := _DIGITS.fullmatch(kind):
        width, scale = int(found[1]), int(found[2] or 0)
        return f"DECIMAL({width},{scale})" if scale <= width <= _MOST_DIGITS else None
    plain = re.sub(r" ?\(\d+\)", "", kind)
    if plain in _TYPES:
        return _TYPES[plain]
    return _OF_AFFINITIES.get(affinity(kind)) if kind else None


def key_value(text: str, kind: str) -> int | float | str:
    """Return what SQLite compares for a value of a type here.

    >>> key_value("7", "BIGINT"), *(key_value(text, "DECIMAL(9,2)") for text in ("1.50", "2.00"))
    (7, 1.5, 2)
    >>> key_value("true", "BOOLEAN"), key_value("7", "VARCHAR"), key_value("9" * 20, "HUGEINT")
    (1, '7', 1e+20)
    """
    plain = kind.partition("(")[0]
    if plain == "BOOLEAN":
        return int(text == "true")
    if plain == "VARCHAR":
        return text
    if plain in _FLOATS:
        return float(text)
    number = Decimal(text)
    whole = number == number.to_integral_value() and -_MOST <= number < _MOST
    return int(number) if whole else float(number)


def json_value(value: object, kind: str) -> str:
    """Return a value as JSON, from which a column of a type here is read.

    >>> json_value(1, "BOOLEAN"), json_value(2, "BOOLEAN"), json_value(b"a", "BLOB")
    ('true', '2', '"YQ=="')
    >>> json_value('{"a": 1}', "JSON"), json_value("[1,2]", "INTEGER[]"), json_value("{", "JSON")
    ('{"a": 1}', '[1,2]', '"{"')
    """
    if kind == "BOOLEAN" and value in (0, 1):
        return json.dumps(bool(value))
    if isinstance(value, str) and kind != "BLOB":
        return text_as_json(value, kind)
    if isinstance(value, bytes | str):
        raw = value.encode() if isinstance(value, str) else value
        return json.dumps(b64encode(raw).decode())
    if isinstance(value, float) and isinf(value):
        return json.dumps(str(value))  # no number of JSON; the record becomes a dead letter
    return json.dumps(value)
