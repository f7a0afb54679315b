"""A schema together with the schemas that it imports, as one text."""

import json
from collections.abc import Mapping
from typing import Any, cast

_MARK = "$schema_with_references"


def with_references(schema: str, references: Mapping[str, str]) -> str:
    """Return a schema and what it refers to, by the names it uses, as one text."""
    if not references:
        return schema
    return json.dumps({_MARK: schema, "references": dict(sorted(references.items()))})


def parts_of(text: str) -> tuple[str, Mapping[str, str]]:
    """Return a schema and what it refers to.

    >>> parts_of(with_references("a", {"b": "c"}))
    ('a', {'b': 'c'})
    >>> parts_of("a")
    ('a', {})
    """
    if not text.startswith("{" + json.dumps(_MARK)):
        return text, {}
    found = cast(Mapping[str, Any], json.loads(text))
    return found[_MARK], found["references"]
