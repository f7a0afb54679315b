"""Functions that every query may call: numbers, bytes and JSON written in other ways."""

import json
from typing import Any, NoReturn, cast

import numpy as np

from kaflow_engine.duck.functions.declared import function

_DIGITS = "0123456789abcdefghijklmnopqrstuvwxyz"
_BASE58 = "123456789ABCDEFGHJKLMNPQRSTUVWXYZabcdefghijkmnopqrstuvwxyz"


@function
def conv_base(number: str, of: int, to: int) -> str | None:
    """Return a whole number written in another base; NULL where it is none, or no base of 2 to 36.

    >>> conv_base("FF", 16, 10), conv_base("-1010", 2, 16), conv_base("9", 8, 10)
    ('255', '-a', None)
    """
    if not (2 <= of <= len(_DIGITS) and 2 <= to <= len(_DIGITS)):
        return None
    digits = number.removeprefix("-" if number.startswith("-") else "+").lower()
    if not digits or not set(digits) <= set(_DIGITS[:of]):
        return None  # Python's int takes more: spaces, underscores, and 0x
    whole = int(digits, of)
    return np.base_repr(-whole if number.startswith("-") else whole, to).lower()


@function
def from_base58(text: str) -> bytes | None:
    """Return the bytes that a text in Base58 means; NULL where it is none.

    >>> from_base58("StV1DL6CwTryKyV"), from_base58("11"), from_base58("0")
    (b'hello world', b'\\x00\\x00', None)
    """
    if not set(text) <= set(_BASE58):
        return None
    number, zeros = 0, len(text) - len(text.lstrip("1"))
    for letter in text:
        number = number * 58 + _BASE58.index(letter)
    return bytes(zeros) + number.to_bytes((number.bit_length() + 7) // 8, "big")


@function
def to_base58(value: bytes) -> str:
    """Return bytes as a text in Base58.

    >>> to_base58(b"hello world"), to_base58(bytes(2))
    ('StV1DL6CwTryKyV', '11')
    """
    number, letters = int.from_bytes(value, "big"), ""
    while number:
        number, digit = divmod(number, 58)
        letters = _BASE58[digit] + letters
    return "1" * (len(value) - len(value.lstrip(b"\0"))) + letters


@function
def reverse_bytes(value: bytes) -> bytes:
    """Return bytes in the opposite order.

    >>> reverse_bytes(b"abc")
    b'cba'
    """
    return value[::-1]


@function
def clickhouse_tuples(objects: str | None, keys: list[str | None]) -> str:
    """Return some fields of a JSON array of objects as an array of tuples of ClickHouse.

    >>> clickhouse_tuples('[{"a": "x", "b": 1}, {"b": true}]', ["a", "b"])
    "[('x', 1), (null, true)]"
    """
    found: object = [] if objects is None else json.loads(objects, parse_constant=_no_json)
    if not isinstance(found, list):
        raise ValueError("it is no JSON array")
    names = [key for key in keys if key is not None]
    tuples = (
        ", ".join(_of_clickhouse(each, name) for name in names)
        for each in cast(list[object], found)
    )
    return f"[{', '.join(f'({fields})' for fields in tuples)}]"


def _of_clickhouse(each: object, name: str) -> str:
    value = cast(dict[str, Any], each).get(name) if isinstance(each, dict) else None
    if isinstance(value, str):
        return "'" + value.replace("\\", "\\\\").replace("'", "\\'") + "'"
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))


def _no_json(word: str) -> NoReturn:
    raise ValueError(f"{word} is no JSON")
