"""Durations as authors write them: `500ms 90s 30m 24h 7d 2w 1h30m`, and nothing else."""

import re
from collections.abc import Sequence
from typing import Annotated, get_args

from pydantic import BeforeValidator
from pydantic_core import PydanticCustomError

from kaflow_engine.errors import Location, ModelError

UNITS: dict[str, int] = {
    "w": 604_800_000,
    "d": 86_400_000,
    "h": 3_600_000,
    "m": 60_000,
    "s": 1_000,
    "ms": 1,
}
"""Milliseconds of each unit, largest first: the order in which they may be combined."""

LONGEST = 36_500 * UNITS["d"]
"""Longest duration accepted: added to any timestamp it stays within 64 bits."""

DURATION_ERROR = "kaflow_duration"
"""Type of the error that a specification raises for text that is not a duration."""

HINT = "write it as 500ms, 90s, 30m, 24h, 7d, 2w or 1h30m; at most 36500d"

_WRITTEN = re.compile("".join(f"(?:([0-9]{{1,15}}){unit})?" for unit in UNITS))


def parse_duration(text: str, at: Location | None = None) -> int:
    """Return the milliseconds that `text` stands for.

    Raises:
        ModelError: The text is not a duration.

    >>> parse_duration("1h30m")
    5400000
    """
    found = _milliseconds(text)
    if found is None:
        raise ModelError(f"'{text}' is not a duration", at, HINT)
    return found


def format_duration(milliseconds: int) -> str:
    """Write a duration the way an author would.

    >>> format_duration(5_400_000), format_duration(1_209_600_000), format_duration(0)
    ('1h30m', '2w', '0s')
    """
    if milliseconds and milliseconds % UNITS["w"] and milliseconds > UNITS["w"]:
        units = {unit: size for unit, size in UNITS.items() if unit != "w"}
    else:
        units = UNITS
    text = ""
    rest = milliseconds
    for unit, size in units.items():
        count, rest = divmod(rest, size)
        text += f"{count}{unit}" if count else ""
    return text or "0s"


def _milliseconds(text: str) -> int | None:
    match = _WRITTEN.fullmatch(text)
    if not text or not match:
        return None
    parts = zip(match.groups(), UNITS.values(), strict=True)
    total = sum(int(count) * size for count, size in parts if count)
    return total if total <= LONGEST else None


def _read(value: object) -> object:
    if isinstance(value, int):
        return value
    found = _milliseconds(value) if isinstance(value, str) else None
    if found is None:
        raise PydanticCustomError(DURATION_ERROR, "not a duration")
    return found


class DurationField:
    """Marks a field as a duration, for whoever prints it."""


Duration = Annotated[int, BeforeValidator(_read), DurationField()]
"""A duration: text in the author's file, milliseconds in the specification."""


def is_duration(annotation: object, metadata: Sequence[object]) -> bool:
    """Tell whether a field of this type, with these marks, is a duration."""
    if any(isinstance(mark, DurationField) for mark in metadata):
        return True
    return any(
        is_duration(None, list(getattr(part, "__metadata__", ()))) for part in get_args(annotation)
    )
