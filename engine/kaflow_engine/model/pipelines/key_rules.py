"""What is wrong with how the keys of records are read, although every value alone is right."""

from collections.abc import Iterator, Mapping
from typing import cast

from kaflow_engine.errors import ModelError
from kaflow_engine.model.files.mistakes import place
from kaflow_engine.model.files.tree import Entries, Scalar, brief
from kaflow_engine.model.key_formats import KEY_TYPES


def types_of_keys(tree: Entries) -> Iterator[ModelError]:
    """The type of a key follows from its format, but for JSON, which may be any."""
    known = cast(Mapping[str, str | None], KEY_TYPES)
    topics = tree.get("topics")
    for entry in topics.entries if isinstance(topics, Entries) else ():
        path, name = ("topics", entry.key), brief(entry.key)
        form, said = (_text(tree, *path, key) for key in ("key_format", "key_type"))
        form = form or "text"
        if form not in known:
            continue
        if said is not None and known[form] is not None:
            yield ModelError(
                f"'key_type' is for keys that are JSON, and those of '{name}' are {form}",
                place(tree, (*path, "key_type")),
                f"write key_format: json; or remove key_type: such keys are {known[form]}",
            )
        elif said is None and known[form] is None and "key_type" not in tree.misspelled:
            yield ModelError(
                f"the keys of '{name}' are JSON, and their type is not said",
                place(tree, (*path, "key_format")),
                "add key_type: <DuckDB type>, such as STRUCT(id BIGINT)",
            )


def _text(tree: Entries, *path: str) -> str | None:
    node = tree.get(*path)
    return node.text if isinstance(node, Scalar) else None
