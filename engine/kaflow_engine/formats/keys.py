"""Keys of Kafka records as bytes: SQL that writes them, and how people write and read them."""

from collections.abc import Mapping
from typing import assert_never

from kaflow_engine.duck.quoting import identifier
from kaflow_engine.formats.json.encode import json_value_sql
from kaflow_engine.formats.types import fields_of
from kaflow_engine.model.key_formats import (
    WINDOWED_END,
    WINDOWED_KEY,
    WINDOWED_START,
    KeyFormat,
    PlainKeyFormat,
    of_value,
    window_of,
)

WIDTHS: Mapping[str, int] = {"int": 4, "long": 8}
"""How many bytes a key has that is a number."""

_TIME = WIDTHS["long"]


def key_bytes_sql(form: KeyFormat, kind: str, sql: str) -> str:
    """Return a BLOB expression of a key; NULL for NULL.

    Args:
        form: As the key is written.
        kind: Its DuckDB type; with a window that of a struct.
        sql: Its value.
    """
    if window_of(form) is None:
        return _bytes(of_value(form), kind, sql)
    kinds = {field.name: field.type for field in fields_of(kind)}
    key = _bytes(of_value(form), kinds[WINDOWED_KEY], _field(sql, WINDOWED_KEY))
    times = [name for name in (WINDOWED_END, WINDOWED_START) if name in kinds]
    return " || ".join((key, *(_bytes("long", "BIGINT", _field(sql, name)) for name in times)))


def _field(sql: str, name: str) -> str:
    return f"({sql}).{identifier(name)}"


def _bytes(form: PlainKeyFormat, kind: str, sql: str) -> str:
    match form:
        case "text":
            return f"encode(CAST({sql} AS VARCHAR))"
        case "int":
            return f"CAST(CAST(CAST({sql} AS INTEGER) AS BIT) AS BLOB)"
        case "long":
            return f"CAST(CAST(CAST({sql} AS BIGINT) AS BIT) AS BLOB)"
        case "bytes":
            return sql if kind == "BLOB" else f"encode(CAST({sql} AS VARCHAR))"
        case "json":
            return f"encode({json_value_sql(kind, sql)})"
        case "avro":
            return sql  # an encoder makes bytes of it: no SQL does
        case _:
            assert_never(form)


def key_of_text(form: KeyFormat, text: str) -> bytes:
    """Return the key that people write as `text_of_key` shows it.

    Raises:
        ValueError: It is no number, or too great.
    """
    window = window_of(form)
    if window is None:
        return _key(of_value(form), text)
    value, _, times = text.rpartition("@")
    start, _, end = times.partition("/")
    found = (end, start) if window == "session" else (start,)
    return b"".join((_key(of_value(form), value), *(_key("long", each) for each in found)))


def _key(form: PlainKeyFormat, text: str) -> bytes:
    if form not in WIDTHS:
        return text.encode()
    try:
        return int(text).to_bytes(WIDTHS[form], "big", signed=True)
    except OverflowError as error:
        raise ValueError(f"{text} does not fit into {WIDTHS[form]} bytes") from error


def text_of_key(form: KeyFormat, key: bytes) -> str:
    """Return a key as people read it: bytes that are no text are escaped, those that are no number,
    or Avro, are hexadecimal; behind that of a window stands `@<start>`, of a session
    `@<start>/<end>`."""
    match window_of(form):
        case None:
            return _text(of_value(form), key)
        case "windowed":
            return f"{_text(of_value(form), key[:-_TIME])}@{_text('long', key[-_TIME:])}"
        case "session":
            end, start = key[-2 * _TIME : -_TIME], key[-_TIME:]
            times = "/".join(_text("long", each) for each in (start, end))
            return f"{_text(of_value(form), key[: -2 * _TIME])}@{times}"


def _text(form: PlainKeyFormat, key: bytes) -> str:
    if form in WIDTHS:
        fits = len(key) == WIDTHS[form]
        return str(int.from_bytes(key, "big", signed=True)) if fits else f"0x{key.hex()}"
    return f"0x{key.hex()}" if form == "avro" else key.decode(errors="backslashreplace")
