"""STORE KEY AS and VALUE AS: the formats that there are, and which of them can be written."""

from kaflow_engine.errors import SqlError, UnknownName
from kaflow_engine.model.lenses.grammar.source_text import SourceText
from kaflow_engine.model.lenses.grammar.syntax import Insert
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
_KEYS = ("STRING", "JSON")
_BINARY_KEYS = ("INT", "LONG", "AVRO", "BYTES", "PROTOBUF")
_ALL = (*FORMATS, *_READ_ONLY, *_BINARY_KEYS)


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


def key_of_output(statement: Insert, relation: Relation, source: SourceText) -> None:
    """Check the format of an output's keys.

    Raises:
        ModelError: Keys cannot be written so.
    """
    said = statement.key
    if said is None:
        return
    at = source.place(said.offset)
    if said.name.startswith(("TW[", "SW[")):
        raise SqlError(
            f"keys cannot be stored as {said.name}",
            at,
            "remove it: the key of a window is JSON, with the fields that it is grouped by and "
            "window_start",
        )
    if said.name in _BINARY_KEYS:
        hint = "remove it: keys are texts, of numbers their digits"
        raise SqlError(f"keys cannot be stored as {said.name}", at, hint)
    if said.name not in _KEYS:
        raise UnknownName("format", said.name, _ALL, at)
    fields = relation.shape.key is not None
    if said.name == "JSON" and not fields and not relation.shape.grouped:
        hint = "write AS _key.<field>, or remove STORE KEY AS"
        raise SqlError("a key that is one text cannot be stored as JSON", at, hint)
    if said.name == "STRING" and fields:
        hint = "write AS _key for one value, or STORE KEY AS JSON"
        raise SqlError("a key with fields cannot be stored as STRING", at, hint)
