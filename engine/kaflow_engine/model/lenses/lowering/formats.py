"""STORE KEY AS and VALUE AS: the formats that there are, and which of them can be written."""

from kaflow_engine.errors import Location, SqlError, UnknownName
from kaflow_engine.model.key_formats import KeyFormat
from kaflow_engine.model.lenses.grammar.source_text import SourceText
from kaflow_engine.model.lenses.grammar.syntax import Insert, Query
from kaflow_engine.model.lenses.lowering.sources import Relation

FORMATS = {
    "JSON": "json",
    "AVRO": "avro",
    "PROTOBUF": "protobuf",
    "STRING": "raw",
    "BYTES": "raw",
}
"""Formats of values that can be written."""

_OF_SOURCE = ("json", "avro", "protobuf", "json_schema")
"""Formats that an output takes over from its source."""

_READ_ONLY = ("CSV", "XML")
_KEYS = {
    "STRING": "text",
    "JSON": "json",
    "INT": "int",
    "LONG": "long",
    "BYTES": "bytes",
    "AVRO": "avro",
}
"""Formats of keys."""
_WINDOWS = {"TW": "windowed", "SW": "session"}
_NOT_OF_KEYS = ("PROTOBUF", *_READ_ONLY)
_ALL = (*FORMATS, *_READ_ONLY, *_KEYS)


def value_format(statement: Insert, relation: Relation, source: SourceText) -> str:
    """Return the format of an output's values.

    Raises:
        ModelError: It cannot be written, or the rows do not fit it.
    """
    whole = relation.shape.whole is not None
    said = statement.value
    if said is None:
        if whole:
            return "raw"
        return relation.format if relation.format in _OF_SOURCE else "json"
    at = source.place(said.offset)
    if said.name in FORMATS:
        form = FORMATS[said.name]
        if (form == "raw") == whole:
            return form
        if whole:
            hint = "write AS <field> instead of AS _value, or STORE VALUE AS STRING"
            raise SqlError(f"a value that is one text cannot be stored as {said.name}", at, hint)
        hint = "write one field AS _value, or STORE VALUE AS JSON"
        raise SqlError(f"a value with fields cannot be stored as {said.name}", at, hint)
    if said.name in _READ_ONLY:
        hint = "write STORE VALUE AS JSON or AVRO"
        raise SqlError(f"{said.name} can be read, and not written", at, hint)
    if said.name in ("INT", "LONG"):
        hint = "write STORE VALUE AS STRING, and CAST(x AS STRING) AS _value"
        raise SqlError(f"{said.name} cannot be written", at, hint)
    raise UnknownName("format", said.name, _ALL, at)


def goes_on(came: KeyFormat | None, stored: str | None) -> bool:
    """Tell whether the key of a record, which is a structure, is written as it came.

    Args:
        came: The format in which it came; None: it is none.
        stored: The one in which the processor says that it is written; None: it does not.
    """
    if came is None or stored is None:
        return came is not None
    name, _, inside = stored.rstrip("]").partition("[")
    written = f"{_WINDOWS.get(name)}_{_KEYS.get(inside)}" if inside else _KEYS.get(name)
    return came == written and came != "json"


def key_format(statement: Insert, relation: Relation, source: SourceText) -> str | None:
    """Return the format of an output's keys; None: as the query makes them.

    Raises:
        ModelError: Keys cannot be written so.
    """
    said, shape = statement.key, relation.shape
    if said is None:
        return shape.key_form if shape.kind == "TABLE" else None
    at = source.place(said.offset)
    window, _, inside = said.name.partition("[")
    name = inside.rstrip("]") if inside else said.name
    if inside and window not in _WINDOWS:
        raise UnknownName("format", said.name, _ALL, at)
    if goes_on(shape.key_form, said.name):
        return shape.key_form if shape.kind == "TABLE" else None
    if name in _NOT_OF_KEYS or (inside and name == "AVRO"):
        hint = "write STORE KEY AS JSON, or another of " + ", ".join(_KEYS)
        raise SqlError(f"keys cannot be stored as {said.name}", at, hint)
    if name not in _KEYS:
        raise UnknownName("format", said.name, _ALL, at)
    if inside:
        _check_window(statement.query, said.name, at)
        return f"{_WINDOWS[window]}_{_KEYS[name]}"
    fields = relation.shape.key is not None
    if name == "JSON" and not fields and not relation.shape.grouped:
        hint = "write AS _key.<field>, or remove STORE KEY AS"
        raise SqlError("a key that is one text cannot be stored as JSON", at, hint)
    if name not in ("JSON", "AVRO") and fields:
        hint = "write AS _key for one value, or STORE KEY AS JSON"
        raise SqlError(f"a key with fields cannot be stored as {name}", at, hint)
    return None if name in ("STRING", "JSON") else _KEYS[name]  # which a query makes itself


def _check_window(query: Query, said: str, at: Location) -> None:
    of = query.window
    if of is None:
        hint = "add WINDOW BY, or write STORE KEY AS " + said[len("TW[") : -1]
        raise SqlError(f"keys cannot be stored as {said} without a window", at, hint)
    right = "SW" if of.kind == "SESSION" else "TW"
    if not said.startswith(right):
        hint = f"write STORE KEY AS {right}{said[len(right) :]}"
        raise SqlError(f"keys of {of.kind} windows cannot be stored as {said}", at, hint)
