"""Guess columns from a sample of JSON values."""

import json
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, cast

from kaflow_engine.formats.types import List, Scalar, Struct, Type, type_text
from kaflow_engine.model.columns import Column

_BIGINT, _DOUBLE, _VARCHAR = Scalar("BIGINT"), Scalar("DOUBLE"), Scalar("VARCHAR")


def columns_of_sample(values: Sequence[bytes]) -> tuple[Column, ...]:
    """Return the columns of the JSON objects among `values`, in the order first seen.

    Whole numbers are BIGINT, other numbers DOUBLE, objects STRUCT, arrays lists. What is always
    null, an empty object, or of several types that do not fit together is VARCHAR. Of names that
    differ by case alone the first counts, as SQL cannot tell them apart.
    """
    fields = _fields([found for value in values if (found := _read(value)) is not None])
    return tuple(Column(name, type_text(kind)) for name, kind in fields)


def _read(value: bytes) -> Mapping[str, Any] | None:
    try:
        found = json.loads(value)
    except (ValueError, RecursionError):
        return None
    return cast(Mapping[str, Any], found) if isinstance(found, dict) else None


def _fields(objects: Iterable[Mapping[str, Any]]) -> list[tuple[str, Type]]:
    found: dict[str, list[Any]] = {}
    spelled: dict[str, str] = {}
    for each in objects:
        for name, value in each.items():
            if name and spelled.setdefault(name.lower(), name) == name:
                found.setdefault(name, []).append(value)
    return [(name, _type(values) or _VARCHAR) for name, values in found.items()]


def _type(values: Iterable[Any]) -> Type | None:
    """The one type that holds all values; None where all are null."""
    present = [value for value in values if value is not None]
    match {_kind(value) for value in present}:
        case kinds if not kinds:
            return None
        case kinds if kinds == {"object"}:
            fields = _fields(cast(list[Mapping[str, Any]], present))
            return Struct(tuple(fields)) if fields else _VARCHAR
        case kinds if kinds == {"array"}:
            items = [item for array in cast(list[list[Any]], present) for item in array]
            return List(_type(items) or _VARCHAR)
        case kinds if kinds <= {"BIGINT", "DOUBLE"}:
            return _DOUBLE if "DOUBLE" in kinds else _BIGINT
        case kinds if kinds == {"BOOLEAN"}:
            return Scalar("BOOLEAN")
        case _:
            return _VARCHAR


def _kind(value: Any) -> str:
    match value:
        case bool():
            return "BOOLEAN"
        case int():
            return "BIGINT" if -(2**63) <= value < 2**63 else "HUGE"
        case float():
            return "DOUBLE"
        case dict():
            return "object"
        case list():
            return "array"
        case _:
            return "VARCHAR"
