"""The difference between two views of states: a merge join in the order of their keys."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Literal

from kaflow_engine.flow.graph import state_names
from kaflow_engine.operators.inspect.state_rows import decode
from kaflow_engine.operators.inspect.state_sides import StateSide, operator_called, state_sides
from kaflow_engine.runtime.maintenance.view import StateView

Change = Literal["added", "removed", "changed"]

_AT_ONCE = 1000


@dataclass(frozen=True, slots=True, kw_only=True)
class Difference:
    """One entry that differs."""

    change: Change
    step: int
    operator: str
    side: str
    key: str | None
    record: str | None
    before: dict[str, Any] | None
    after: dict[str, Any] | None

    def data(self) -> dict[str, Any]:
        """Return plain data."""
        return {
            "change": self.change,
            "step": self.step,
            "operator": self.operator,
            "side": self.side,
            "key": self.key,
            "record": self.record,
            "before": self.before,
            "after": self.after,
        }


@dataclass(frozen=True, slots=True)
class _Pair:
    """An entry's key with what each state has under it."""

    key: bytes
    before: bytes | None
    after: bytes | None


def differences(before: StateView, after: StateView) -> Iterator[Difference]:
    """Yield the entries that differ, by step, side and key; not those of the index by due time."""
    sides: dict[tuple[int, int], StateSide] = {}
    for view in (before, after):
        sides |= {(s.step, s.byte): s for s in state_sides(view.moment.plan) if s.kind != "due"}
    for place in sorted(sides):
        pairs: list[_Pair] = []
        for pair in _pairs(before, after, sides[place]):
            pairs.append(pair)
            if len(pairs) == _AT_ONCE:
                yield from _decoded(before, after, sides[place], pairs)
                pairs.clear()
        yield from _decoded(before, after, sides[place], pairs)


def _pairs(before: StateView, after: StateView, side: StateSide) -> Iterator[_Pair]:
    """Merge the entries of a side, and yield those that are not equal."""
    ones, others = _entries(before, side), _entries(after, side)
    one, other = next(ones, None), next(others, None)
    while one is not None or other is not None:
        if other is None or (one is not None and one[0] < other[0]):
            assert one is not None
            yield _Pair(one[0], one[1], None)
            one = next(ones, None)
        elif one is None or other[0] < one[0]:
            yield _Pair(other[0], None, other[1])
            other = next(others, None)
        else:
            if one[1] != other[1]:
                yield _Pair(one[0], one[1], other[1])
            one, other = next(ones, None), next(others, None)


def _entries(view: StateView, side: StateSide) -> Iterator[tuple[bytes, bytes]]:
    if side.step not in state_names(view.moment.plan):
        return
    for found in view.ranges(side.step, side.byte):
        yield from zip(found.keys, found.values, strict=True)


def _decoded(
    before: StateView, after: StateView, side: StateSide, pairs: list[_Pair]
) -> Iterator[Difference]:
    if not pairs:
        return
    old = _rows(before, side, [(pair.key, pair.before) for pair in pairs])
    new = _rows(after, side, [(pair.key, pair.after) for pair in pairs])
    for pair in pairs:
        one, other = old.get(pair.key), new.get(pair.key)
        about = one or other
        assert about is not None, "one of them has it"
        yield Difference(
            change="added" if one is None else "removed" if other is None else "changed",
            step=side.step,
            operator=operator_called(side.step, (after if other else before).moment.plan),
            side=side.name,
            key=about["key"],
            record=about["record"],
            before=one and one["value"],
            after=other and other["value"],
        )


def _rows(
    view: StateView, side: StateSide, entries: list[tuple[bytes, bytes | None]]
) -> dict[bytes, dict[str, Any]]:
    found = [(key, value) for key, value in entries if value is not None]
    if not found:
        return {}
    keys, values = [key for key, _ in found], [value for _, value in found]
    rows = decode(view.moment.plan, side, keys, values).json_rows()
    return dict(zip(keys, rows, strict=True))
