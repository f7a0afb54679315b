"""Values of case files: JSON with every digit kept, and compared as JSON."""

import json
from collections.abc import Hashable, Mapping, Sequence
from decimal import Decimal
from typing import TypeAlias, cast

from kaflow_engine.model.files.tree import Entries, Items, Node, Scalar

Json: TypeAlias = "str | int | Decimal | bool | list[Json] | dict[str, Json] | None"
"""A JSON value; numbers with a fraction or an exponent are Decimal, so that no digit is lost."""


def json_of(node: Node) -> Json:
    """Return what an author wrote as a JSON value."""
    match node:
        case Scalar(value=value, text=text):
            return Decimal(text or repr(value)) if isinstance(value, float) else value
        case Items(items=items):
            return [json_of(item) for item in items]
        case Entries(entries=entries):
            return {entry.key: json_of(entry.value) for entry in entries}


def parse_json(text: str | bytes) -> Json:
    """Read JSON text; raise ValueError when it is none."""
    return cast(Json, json.loads(text, parse_float=Decimal))


def json_text(value: Json) -> str:
    """Write a JSON value on one line, without spaces."""
    match value:
        case dict():
            inside = (f"{json_text(name)}:{json_text(item)}" for name, item in value.items())
            return f"{{{','.join(inside)}}}"
        case list():
            return f"[{','.join(map(json_text, value))}]"
        case Decimal():
            return str(value)
        case _:
            return json.dumps(value, ensure_ascii=False)


def comparable(value: Json) -> Hashable:
    """Return what two values share exactly if JSON calls them equal: 1 and 1.0, not 1 and true."""
    match value:
        case bool() | None | str():
            return type(value).__name__, value
        case int() | Decimal():
            return "number", Decimal(value)
        case list():
            return "list", tuple(comparable(item) for item in cast(Sequence[Json], value))
        case dict():
            members = cast(Mapping[str, Json], value).items()
            return "object", frozenset((name, comparable(item)) for name, item in members)
