"""pydantic's validation errors as messages of our own."""

import re
from collections.abc import Mapping
from typing import cast

from pydantic_core import ErrorDetails

from kaflow_engine.errors import Location, ModelError, UnknownName
from kaflow_engine.model.durations import DURATION_ERROR
from kaflow_engine.model.durations import HINT as DURATION_HINT
from kaflow_engine.model.files.tree import Entries, Node, Scalar, brief, describe, find
from kaflow_engine.model.names import SPEC_ERROR
from kaflow_engine.model.spec import Path

EXPECTED: Mapping[str, str] = {
    "string_type": "text",
    "int_parsing": "a whole number",
    "int_parsing_size": "a smaller number",
    "int_type": "a whole number",
    "int_from_float": "a whole number",
    "float_parsing": "a number",
    "float_type": "a number",
    "finite_number": "a number",
    "bool_parsing": "true or false",
    "bool_type": "true or false",
    "tuple_type": "a list of names",
    "dict_type": "a mapping",
    "model_type": "a mapping",
    "model_attributes_type": "a mapping",
    "date_from_datetime_parsing": "a date such as 2026-01-31",
    "date_from_datetime_inexact": "a date such as 2026-01-31",
    "date_type": "a date such as 2026-01-31",
    "datetime_from_date_parsing": "a time such as 2026-01-31T00:00:00Z",
    "datetime_parsing": "a time such as 2026-01-31T00:00:00Z",
    "datetime_type": "a time such as 2026-01-31T00:00:00Z",
    "timezone_aware": "a time such as 2026-01-31T00:00:00Z",
    DURATION_ERROR: "a duration",
}
"""What was expected, by type of finding."""

_LISTS: Mapping[str, tuple[str, str | None]] = {
    "fields": ("a list of fields", None),
    "outputs": ("a list of outputs", "write - {from: <relation>, topic: <topic>}"),
}
"""Keys that take a list of something else than names: what was expected, and what to write."""

REQUIRED: Mapping[str, str] = {
    "name": "write name: <name>; its state and its consumer group are called so",
    "query": "write query: SELECT … FROM topic …",
    "output": "write output: {topic: <topic>, key: <column>}",
}
"""What to do about a missing key."""


def translate(detail: ErrorDetails, tree: Node) -> ModelError | None:
    """Word one finding; None: its cause was already reported."""
    path: Path = detail["loc"]
    kind = detail["type"]
    key = dotted(path)
    if kind == "missing":
        above = find(tree, path[:-1])
        if isinstance(above, Entries) and path[-1] in above.misspelled:
            return None
        return ModelError(f"'{key}' is required", place(tree, path[:-1]), REQUIRED.get(key))
    node = _nearest(tree, path)
    at = node.at if isinstance(node, Scalar) else place(tree, path)
    if isinstance(node, Scalar) and node.broken:
        return None
    context = detail.get("ctx", {})
    if kind == "literal_error":
        return _unknown(key, node, at, str(context.get("expected", "")))
    if kind == SPEC_ERROR:
        return _refused(key, node, at, cast(Mapping[str, str], context))
    if kind == "greater_than":
        return ModelError(f"'{key}' must be greater than 0", at)
    if kind == "less_than_equal":
        return ModelError(f"'{key}' must be at most {context.get('le')}", at)
    if kind == DURATION_ERROR and isinstance(node, Scalar) and node.text is not None:
        return ModelError(f"{shown(node)} is not a duration", at, DURATION_HINT)
    if kind in EXPECTED:
        return _unexpected(key, node, at, kind)
    return ModelError(f"'{key}': {shown(node)} cannot stand here", at)


def place(tree: Node, path: Path) -> Location:
    """Return where a key or list item stands; of an absent one, what encloses it."""
    found = tree.at
    for end in range(len(path)):
        above = find(tree, path[:end])
        if isinstance(above, Entries):
            entry = next((entry for entry in above.entries if entry.key == path[end]), None)
            found = entry.at if entry else found
        elif (item := find(tree, path[: end + 1])) is not None:
            found = item.at
    return found


def dotted(path: Path) -> str:
    """Write a path as an author would name it; positions in lists are left out."""
    return ".".join(brief(step) for step in path if isinstance(step, str))


def shown(node: Node) -> str:
    """Quote what was written; variables are not expanded."""
    if not isinstance(node, Scalar) or node.text is None:
        return describe(node)
    return f"'{brief(node.written)}'"


def _nearest(tree: Node, path: Path) -> Node:
    for end in range(len(path), 0, -1):
        if found := find(tree, path[:end]):
            return found
    return tree


def _unknown(key: str, node: Node, at: Location, expected: str) -> ModelError:
    known = re.findall(r"'([^']*)'", expected)
    if isinstance(node, Scalar) and node.text is not None and node.written == node.text:
        return UnknownName(key, brief(node.text), known, at)
    found = shown(node)
    return ModelError(f"unknown {key} {found}", at, "known: " + ", ".join(sorted(known)))


def _refused(key: str, node: Node, at: Location, context: Mapping[str, str]) -> ModelError:
    message = context["message"]
    text = message.replace("{value}", shown(node)) if "{value}" in message else f"'{key}' {message}"
    return ModelError(text, at, context["hint"] or None)


def _unexpected(key: str, node: Node, at: Location, kind: str) -> ModelError:
    expected, hint = EXPECTED[kind], None
    if kind == "tuple_type":
        of_names = (expected, "write it as [one, two]")
        expected, hint = _LISTS.get(key.rpartition(".")[2], of_names)
    parsed = kind.endswith("_parsing") or kind in ("int_parsing_size", "finite_number")
    found = shown(node) if parsed else describe(node)
    subject = f"'{key}': " if key else ""
    return ModelError(f"{subject}expected {expected}, found {found}", at, hint)
