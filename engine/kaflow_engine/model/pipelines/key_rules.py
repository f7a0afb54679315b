"""What is wrong with how the keys of records are read, although every value alone is right."""

from collections.abc import Iterator, Mapping
from typing import get_args

from kaflow_engine.errors import ModelError
from kaflow_engine.model.files.mistakes import place
from kaflow_engine.model.files.tree import Entries, brief, text_at
from kaflow_engine.model.key_formats import KEY_TYPES, KeyFormat, PlainKeyFormat, of_value

_TITLES: Mapping[PlainKeyFormat, str] = {"json": "JSON", "avro": "Avro"}
"""Formats whose keys may be of many types."""


def types_of_keys(tree: Entries) -> Iterator[ModelError]:
    """The type of a key follows from its format, but for JSON and Avro."""
    topics = tree.get("topics")
    for entry in topics.entries if isinstance(topics, Entries) else ():
        path, name = ("topics", entry.key), brief(entry.key)
        form, said = (text_at(tree, *path, key) for key in ("key_format", "key_type"))
        known = next((each for each in get_args(KeyFormat) if each == (form or "text")), None)
        if known is None or not isinstance(entry.value, Entries):
            continue
        plain = of_value(known)
        title = _TITLES.get(plain)
        if said is not None and title is None:
            yield ModelError(
                f"'key_type' is for keys that are JSON or Avro, and those of '{name}' are {known}",
                place(tree, (*path, "key_type")),
                f"write key_format: json; or remove key_type: such keys are {KEY_TYPES[plain]}",
            )
        elif said is None and title is not None and "key_type" not in entry.value.misspelled:
            yield ModelError(
                f"the keys of '{name}' are {title}, and their type is not said",
                place(tree, (*path, "key_format")),
                "add key_type: <DuckDB type>, such as STRUCT(id BIGINT)",
            )
