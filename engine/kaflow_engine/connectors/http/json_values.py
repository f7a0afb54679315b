"""Finds values in JSON and leaves their text as it is: a number keeps all its digits."""

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

_SPACE = re.compile(r"[ \t\n\r]*")
_DECODER = json.JSONDecoder(parse_float=Decimal)


@dataclass(frozen=True, slots=True)
class JsonValue:
    """A value, and its text."""

    value: Any
    text: str


def parsed(body: bytes) -> str:
    """Return the text of a JSON value.

    Raises:
        ValueError: It is none.
    """
    try:
        text = body.decode(json.detect_encoding(body)).removeprefix("\ufeff")
        json.loads(text)
    except RecursionError:
        raise ValueError("it is nested too deeply") from None
    return text


def value_at(text: str, path: str | None) -> JsonValue | None:
    """Return what a path leads to; None: it leads nowhere.

    Args:
        text: A JSON value.
        path: Names of members with `.` between; None: the value itself.

    >>> value_at('{"a": {"b": 1.50}}', "a.b")
    JsonValue(value=Decimal('1.50'), text='1.50')
    >>> value_at('{"a": [1]}', "a.b") is None
    True
    """
    at: int | None = _skipped(text, 0)
    for name in path.split(".") if path else ():
        at = dict(_members(text, at)).get(name)
        if at is None:
            return None
    return _value(text, at)


def items(found: JsonValue) -> Iterator[JsonValue]:
    """Yield the items of a list."""
    text, at = found.text, _skipped(found.text, 1)
    while text[at] != "]":
        item = _value(text, at)
        yield item
        at = _skipped(text, at + len(item.text))
        at = _skipped(text, at + 1) if text[at] == "," else at


def _members(text: str, at: int) -> Iterator[tuple[str, int]]:
    """Yield the names of an object, and where their values begin."""
    if text[at] != "{":
        return
    at = _skipped(text, at + 1)
    while text[at] != "}":
        name = _value(text, at)
        at = _skipped(text, _skipped(text, at + len(name.text)) + 1)  # behind the colon
        yield name.value, at
        at = _skipped(text, at + len(_value(text, at).text))
        at = _skipped(text, at + 1) if text[at] == "," else at


def _value(text: str, at: int) -> JsonValue:
    value, end = _DECODER.raw_decode(text, at)
    return JsonValue(value, text[at:end])


def _skipped(text: str, at: int) -> int:
    found = _SPACE.match(text, at)
    assert found is not None
    return found.end()
