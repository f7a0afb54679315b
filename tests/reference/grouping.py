"""What the oracle knows of GROUP BY: groups, windows, calls, and what is selected of them."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, assert_never

from tests.reference.conditions import Condition, passes

Entry = Mapping[str, object]
"""A row on its way into a group: its grouping values and arguments by name."""

Function = Literal[
    "count_star", "count", "count_distinct", "sum", "min", "max", "avg", "median", "list",
    "first", "last",
]  # fmt: skip

START, END = "window_start", "window_end"
"""What the bounds of a window are called among the values of a group."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Hop:
    """Windows of `size` ms, one every `advance` ms; tumbling where these are equal."""

    size: int
    advance: int

    def starts(self, ts: int) -> list[int]:
        """Return the starts of the windows that hold an instant, in their order."""
        last = ts - ts % self.advance
        return [s for s in range(last - self.size + self.advance, last + 1, self.advance)]


@dataclass(frozen=True, slots=True, kw_only=True)
class Session:
    """Rows of a group whose distance is at most `gap` ms."""

    gap: int


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupCall:
    """One call of an aggregate function."""

    name: str
    function: Function
    argument: str | None = None
    where: tuple[Condition, ...] = ()
    """FILTER, over columns of the entry row under the alias `""`."""

    def of(self, rows: Sequence[Entry]) -> object:
        """Compute the call over the rows of a group, in their order."""
        rows = [row for row in rows if passes(self.where, {"": row})]
        every: list[Any] = [None if self.argument is None else row[self.argument] for row in rows]
        known = [value for value in every if value is not None]
        match self.function:
            case "count_star":
                return len(rows)
            case "count":
                return len(known)
            case "count_distinct":
                return len(set(known))
            case "sum":
                return sum(known) if known else None
            case "min":
                return min(known, default=None)
            case "max":
                return max(known, default=None)
            case "avg":
                return sum(known) / len(known) if known else None
            case "median":
                return _median(sorted(known))
            case "list":
                return every or None
            case "first":
                return every[0] if every else None
            case "last":
                return every[-1] if every else None
            case _:
                assert_never(self.function)


@dataclass(frozen=True, slots=True, kw_only=True)
class Grouping:
    """One GROUP BY, and what is selected of its groups."""

    keys: tuple[str, ...]
    """Names of grouping values in the entry row."""
    window: Hop | Session | None
    calls: tuple[GroupCall, ...]
    passed_on: bool = False
    """The window is that of the groups before it."""
    start: str | None = None
    """What names the start of that window in the entry row."""
    select: tuple[tuple[str, str], ...]
    """What is selected: its name, and the key, call or bound of the window that it is."""
    having: tuple[Condition, ...] = ()
    """Over keys and calls under the alias `""`."""
    final: bool = False
    """Rows of windows leave when these are closed, and never again."""
    ended: bool = False
    """Rows of windows leave when these end, and again with late rows."""
    each: bool = False
    """Every record that changes a group sends it; else the batch does, once."""
    grace: int = 0
    delay: int = 0
    """How far its rows may be behind the watermark of the chain."""
    ttl: int | None = None
    remembers: int | None = None
    """What `ttl` is of DISTINCT where nothing is said."""
    on_late: Literal["drop", "dead_letter"] = "drop"
    distinct: bool = False
    """It is SELECT DISTINCT: a row leaves where no equal one is remembered, for `ttl`."""

    def shown(self, values: Entry) -> Entry | None:
        """Return what is selected of a group; None where it does not fulfil HAVING."""
        if not passes(self.having, {"": values}):
            return None
        return {name: values[of] for name, of in self.select}

    def named(self) -> list[tuple[str, str]]:
        """Return each grouping value with what the result calls it, in order."""
        return [
            (next((name for name, of in self.select if of == key), key), key) for key in self.keys
        ]


def _median(known: Sequence[Any]) -> float | None:
    if not known:
        return None
    half = len(known) // 2
    return float(known[half]) if len(known) % 2 else (known[half - 1] + known[half]) / 2
