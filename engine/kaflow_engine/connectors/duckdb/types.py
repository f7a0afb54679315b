"""Types of DuckDB files as those of columns here."""

import re

from kaflow_engine.errors import ModelError
from kaflow_engine.formats.types import (
    INTEGERS,
    Decimal,
    List,
    Map,
    Scalar,
    Struct,
    Type,
    parse_type,
    type_text,
)

_SAME = (
    *INTEGERS,
    *("FLOAT", "DOUBLE", "BOOLEAN", "VARCHAR", "BLOB", "UUID", "JSON"),
    *("DATE", "TIME", "TIMESTAMP", "TIMESTAMP WITH TIME ZONE"),
)
_OTHERS = {"TIMESTAMP_S": "TIMESTAMP", "TIMESTAMP_MS": "TIMESTAMP", "INTERVAL": "VARCHAR"}
"""An interval is text: months have no one length."""
_ARRAY = re.compile(r"(.+)\[\d+\]")


def read_as(kind: str) -> str | None:
    """Return the type of a column for values of a type of a file; None: there is none.

    >>> read_as("ENUM('a', 'b')"), read_as("STRUCT(a TIMESTAMP_S, b INTEGER[3])")
    ('VARCHAR', 'STRUCT("a" TIMESTAMP, "b" INTEGER[])')
    >>> read_as("TIMESTAMP_NS"), read_as("BIT[]"), read_as("DECIMAL(9,2)")
    (None, None, 'DECIMAL(9,2)')
    """
    try:
        found = _read(parse_type(kind))
    except ModelError:
        return None
    return None if found is None else type_text(found)


def _read(kind: Type) -> Type | None:
    match kind:
        case Scalar(name=name):
            if name in _SAME:
                return kind
            if array := _ARRAY.fullmatch(name):
                return _read(List(parse_type(array[1])))
            other = "VARCHAR" if name.startswith("ENUM") else _OTHERS.get(name)
            return None if other is None else Scalar(other)
        case Decimal():
            return kind
        case List(element=element):
            of = _read(element)
            return None if of is None else List(of)
        case Map(key=key, value=value):
            both = _read(key), _read(value)
            return None if both[0] is None or both[1] is None else Map(both[0], both[1])
        case Struct(fields=fields):
            made = [(name, _read(each)) for name, each in fields]
            known = tuple((name, each) for name, each in made if each is not None)
            return Struct(known) if len(known) == len(made) else None
