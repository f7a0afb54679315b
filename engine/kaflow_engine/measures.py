"""Measures: what tasks and receivers count, and what time they take, under names and labels."""

import threading
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Literal, NamedTuple

Kind = Literal["count", "level", "time"]

MOST = 2_000
"""Series of one pipeline: labels whose values never end must not fill the memory."""


class Series(NamedTuple):
    """What is measured."""

    kind: Kind
    """A count only grows, a level is what it was last, and of times there are a sum and a count."""
    name: str
    labels: tuple[tuple[str, str], ...] = ()
    """By name."""


@dataclass(frozen=True, slots=True)
class Measure:
    """What was measured of a series."""

    value: float
    """Of times the sum, in seconds."""
    times: int = 1
    """How often."""


Measured = Mapping[Series, Measure]

Measurements = tuple[tuple[Series, Measure], ...]
"""The same as plain data."""


@dataclass(frozen=True, slots=True)
class Measures:
    """Takes measurements, from several threads."""

    _found: dict[Series, Measure] = field(default_factory=dict[Series, Measure])
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def count(self, name: str, by: float = 1, /, **labels: str) -> None:
        """Add to a count."""
        self._take(Series("count", name, _sorted(labels)), by)

    def level(self, name: str, value: float, /, **labels: str) -> None:
        """Say what a level is now."""
        self._take(Series("level", name, _sorted(labels)), value)

    def time(self, name: str, seconds: float, /, **labels: str) -> None:
        """Say how long something took, in seconds."""
        self._take(Series("time", name, _sorted(labels)), seconds)

    def taken(self) -> dict[Series, Measure]:
        """Return what was measured so far."""
        with self._lock:
            return dict(self._found)

    def handed_over(self) -> dict[Series, Measure]:
        """Return what was measured since this was called last."""
        with self._lock:
            found = dict(self._found)
            self._found.clear()
        return found

    def add(self, measured: Measured) -> None:
        """Take what was measured elsewhere."""
        with self._lock:
            for series, measure in measured.items():
                _add(self._found, series, measure)

    def _take(self, series: Series, value: float) -> None:
        with self._lock:
            _add(self._found, series, Measure(value))


def added(known: Measured, new: Iterable[tuple[Series, Measure]]) -> dict[Series, Measure]:
    """Return what was measured before and since; what goes beyond `MOST` series is left out."""
    found = dict(known)
    for series, measure in new:
        _add(found, series, measure)
    return found


def _add(found: dict[Series, Measure], series: Series, new: Measure) -> None:
    before = found.get(series)
    if before is None:
        if len(found) < MOST:
            found[series] = new
        return
    value = new.value if series.kind == "level" else before.value + new.value
    found[series] = replace(before, value=value, times=before.times + new.times)


def to_json(measured: Measured) -> list[list[Any]]:
    """Return measures as data for JSON."""
    return [[*series, measure.value, measure.times] for series, measure in measured.items()]


def of_json(rows: Iterable[list[Any]]) -> Iterable[tuple[Series, Measure]]:
    """Yield measures that `to_json` made data of."""
    for kind, name, labels, value, times in rows:
        yield Series(kind, name, tuple((key, each) for key, each in labels)), Measure(value, times)


def _sorted(labels: Mapping[str, str]) -> tuple[tuple[str, str], ...]:
    return tuple(sorted(labels.items()))
