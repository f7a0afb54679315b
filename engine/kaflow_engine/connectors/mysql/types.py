"""Types of MySQL and MariaDB as those of columns here, and values as JSON and back."""

import json
import re
import struct
from base64 import b64encode
from dataclasses import dataclass

from kaflow_engine.connectors.attached.values import text_as_json
from kaflow_engine.duck.wide.integers import BIGNUM

_INTEGERS = {
    "tinyint": ("TINYINT", "UTINYINT"),
    "smallint": ("SMALLINT", "USMALLINT"),
    "mediumint": ("INTEGER", "UINTEGER"),
    "int": ("INTEGER", "UINTEGER"),
    "bigint": ("BIGINT", "UBIGINT"),
    "year": ("SMALLINT", "SMALLINT"),
    "bit": ("UBIGINT", "UBIGINT"),
}
"""Without and with `unsigned`."""
_TYPES = {
    "float": "FLOAT",
    "double": "DOUBLE",
    "date": "DATE",
    "time": "TIME",
    "datetime": "TIMESTAMP",
    "timestamp": "TIMESTAMP WITH TIME ZONE",
    "json": "JSON",
    "uuid": "UUID",
    **dict.fromkeys(("char", "varchar", "tinytext", "text", "mediumtext", "longtext"), "VARCHAR"),
    **dict.fromkeys(("enum", "set", "inet4", "inet6"), "VARCHAR"),
    **dict.fromkeys(("binary", "varbinary"), "BLOB"),
    **dict.fromkeys(("tinyblob", "blob", "mediumblob", "longblob"), "BLOB"),
}
"""A timestamp is an instant; the session is in UTC."""
_KEYS = {
    "FLOAT": "double",
    "DOUBLE": "double",
    "DATE": "date",
    "TIME": "time(6)",
    "TIMESTAMP": "datetime(6)",
    "TIMESTAMP WITH TIME ZONE": "datetime(6)",
}
_DIGITS = re.compile(r"decimal\((\d+),(\d+)\).*")
_MOST_DIGITS = 38


@dataclass(frozen=True, slots=True, kw_only=True)
class Kind:
    """The type of a column as the server describes it."""

    text: str
    """Such as `int(11) unsigned`."""
    charset: str | None = None
    collation: str | None = None

    @property
    def plain(self) -> str:
        """Its first word."""
        return re.split(r"[( ]", self.text, maxsplit=1)[0]

    @property
    def is_integer(self) -> bool:
        """Whether its values are whole numbers."""
        return self.plain in _INTEGERS


def read_as(kind: Kind) -> str | None:
    """Return the type of a column for values of a type; None: there is none.

    >>> [read_as(Kind(text=text)) for text in ("int(11)", "bigint unsigned", "enum('a')", "point")]
    ['INTEGER', 'UBIGINT', 'VARCHAR', None]
    >>> [read_as(Kind(text=text)) for text in ("decimal(9,2) unsigned", "decimal(65,0)", "bit(3)")]
    ['DECIMAL(9,2)', 'BIGNUM', 'UBIGINT']
    """
    if found := _DIGITS.fullmatch(kind.text):
        width, scale = int(found[1]), int(found[2])
        if not scale and width > _MOST_DIGITS:
            return BIGNUM
        return f"DECIMAL({width},{scale})" if width <= _MOST_DIGITS else None
    if kind.is_integer:
        return _INTEGERS[kind.plain]["unsigned" in kind.text]
    return _TYPES.get(kind.plain)


def value_sql(column: str, kind: Kind) -> str:
    """Return SQL of a value as the server writes it whole: it would round a FLOAT, and give the
    bytes of a BIT.

    >>> value_sql("`f`", Kind(text="float")), value_sql("`b`", Kind(text="bit(3)"))
    ('CAST(`f` AS DOUBLE)', '`b` + 0')
    """
    if kind.plain == "bit":
        return f"{column} + 0"
    return f"CAST({column} AS DOUBLE)" if kind.plain == "float" else column


def key_sql(kind: Kind) -> str:
    """Return the type of values that a column is compared with, so that an index serves.

    >>> key_sql(Kind(text="int(10) unsigned")), key_sql(Kind(text="decimal(9,2)"))
    ('bigint unsigned', 'decimal(9,2)')
    >>> key_sql(Kind(text="char(9)", charset="latin1", collation="latin1_bin"))
    'varchar(9) CHARACTER SET latin1 COLLATE latin1_bin'
    """
    if kind.is_integer:
        signed = "unsigned" not in kind.text and kind.plain != "bit"
        return "bigint" if signed else "bigint unsigned"
    if found := _DIGITS.fullmatch(kind.text):
        return f"decimal({found[1]},{found[2]})"
    if kind.charset is None or kind.collation is None:
        return _KEYS.get(read_as(kind) or "", "varchar(255)")
    texts = {"char": f"var{kind.text}", "varchar": kind.text}
    as_text = texts.get(kind.plain, "longtext")
    return f"{as_text} CHARACTER SET {kind.charset} COLLATE {kind.collation}"


def key_text(text: str, wanted: str) -> str:
    """Return a value of a type here as the server reads it.

    >>> key_text("2026-01-02 03:04:05+00", "TIMESTAMP WITH TIME ZONE"), key_text("true", "BOOLEAN")
    ('2026-01-02 03:04:05', '1')
    >>> key_text("0.1", "FLOAT")
    '0.10000000149011612'
    """
    match wanted:
        case "TIMESTAMP WITH TIME ZONE":
            return text.removesuffix("+00")
        case "BOOLEAN":
            return str(int(text == "true"))
        case "FLOAT":
            return repr(struct.unpack("f", struct.pack("f", float(text)))[0])
        case _:
            return text


def json_value(value: str | bytes | None, kind: Kind, wanted: str) -> str:
    """Return a value as JSON, from which a column of a type here is read.

    >>> json_value("007", Kind(text="int(3) unsigned zerofill"), "UINTEGER")
    '7'
    >>> json_value("1", Kind(text="tinyint(1)"), "BOOLEAN")
    'true'
    >>> json_value("2026-01-02 03:04:05", Kind(text="timestamp"), "TIMESTAMP WITH TIME ZONE")
    '"2026-01-02 03:04:05+00"'
    """
    if value is None:
        return "null"
    if isinstance(value, bytes):
        return json.dumps(b64encode(value).decode())
    if wanted == "BOOLEAN" and value in ("0", "1"):
        return json.dumps(value == "1")
    if kind.is_integer:
        return str(int(value))
    if kind.plain == "timestamp":
        return json.dumps(f"{value}+00")
    is_number = kind.plain in ("float", "double", "decimal")
    return value if is_number else text_as_json(value, wanted)
