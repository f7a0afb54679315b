"""Changes that are held back: a key sends one at most in so much batch time."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any, Protocol

from tests.reference.records import Batch, BatchResult, Emitted


class Runs(Protocol):
    """An oracle that holds nothing back."""

    @property
    def is_due(self) -> bool:
        """Tell whether the next batch does something without records."""
        ...

    def run(self, batch: Batch) -> BatchResult:
        """Take one batch."""
        ...


def paces(author: Mapping[str, Any], duration: Callable[[str], int]) -> dict[str, int]:
    """Return how long a key of each topic holds its changes, in ms; of topics where it does."""
    emission = author.get("emission", {})
    found: dict[str, int] = {}
    for output in author.get("outputs") or [author["output"]]:
        default = emission.get("every") if output.get("coalesce") != "none" else None
        if (every := output.get("every", default)) is not None:
            found[output["topic"]] = duration(every)
    return found


@dataclass(slots=True)
class _Key:
    """What a key sent last, until when it waits, and what it holds since."""

    until: int
    value: Mapping[str, object] | None
    held: Emitted | None = None


class Throttled:
    """An oracle behind whose outputs changes are held back.

    Args:
        oracle: Says what changes.
        every: By topic, as `paces` gives it.
    """

    def __init__(self, oracle: Runs, every: Mapping[str, int]) -> None:
        self._oracle, self._every = oracle, every
        self._keys: dict[tuple[str, object], _Key] = {}

    @property
    def is_due(self) -> bool:
        """Tell whether the next batch does something without records."""
        return self._oracle.is_due

    def run(self, batch: Batch) -> BatchResult:
        """Take one batch."""
        result = self._oracle.run(batch)
        last = {(row.topic, row.key): row for row in result.rows if row.topic in self._every}
        rows = [row for row in result.rows if row.topic not in self._every]
        for place in {**last, **self._keys}:
            known = self._keys.get(place)
            newest = last.get(place) or (known.held if known else None)
            same = known is not None and newest is not None and newest.value == known.value
            change = None if same else newest
            closes = batch.last or place in result.closed
            if known is not None and batch.time < known.until and not closes:
                known.held = change
                continue
            self._keys.pop(place, None)
            if change is not None:
                rows.append(change)
                if not closes:
                    until = batch.time + self._every[place[0]]
                    self._keys[place] = _Key(until, change.value)
        return replace(result, rows=tuple(rows))
