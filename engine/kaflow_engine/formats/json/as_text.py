"""JSON that was read, as compact text again: every number as it was written."""

import json
import re
from collections.abc import Mapping
from typing import Any, cast


class Number(str):
    """A JSON number, as it was written."""

    __slots__ = ()


def to_text(value: Any) -> str:
    """Write a value as compact JSON, every number as it was read."""
    if isinstance(value, dict):
        items = cast(Mapping[str, Any], value).items()
        return "{" + ",".join(f"{to_text(key)}:{to_text(item)}" for key, item in items) + "}"
    if isinstance(value, list):
        return "[" + ",".join(to_text(item) for item in cast(list[Any], value)) + "]"
    return str(value) if isinstance(value, Number) else _quoted(value)


def _quoted(value: object) -> str:
    """Return a text, a boolean or null as DuckDB writes it: control characters in capitals."""
    text = json.dumps(value, ensure_ascii=False)
    if "\\u00" not in text:
        return text
    return _ESCAPED.sub(lambda found: found[1] or f"\\u{found[2].upper()}", text)


_ESCAPED = re.compile(r"(\\\\)|\\u([0-9a-f]{4})")
