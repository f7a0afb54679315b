"""The watermark: how far event time has come, as a pure function of what batches read."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from kaflow_engine.flow.sources import TopicParams
from kaflow_engine.operators.rows.reports import BatchReport

END = 1 << 61
"""The watermark at the end of a bounded run: after every event time."""

Place = tuple[str, int]
"""A topic and one of its partitions."""


@dataclass(frozen=True, slots=True, kw_only=True)
class WatermarkState:
    """Event time of each source partition; all times in epoch milliseconds."""

    value: int | None = None
    """The watermark; None before the first record of every event topic."""
    base: int | None = None
    """Its last value while some topic counted."""
    latest: tuple[tuple[str, int, int], ...] = ()
    """(topic, partition, greatest event time)."""
    seen: tuple[tuple[str, int, int], ...] = ()
    """(topic, partition, batch time of its last record, or of the first batch)."""

    def to_json(self) -> dict[str, Any]:
        """Return plain data for the batch log."""
        return {
            "value": self.value,
            "base": self.base,
            "latest": [list(row) for row in self.latest],
            "seen": [list(row) for row in self.seen],
        }

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> "WatermarkState":
        """Read what `to_json` wrote."""
        return cls(
            value=data["value"],
            base=data["base"],
            latest=tuple((t, p, ts) for t, p, ts in data["latest"]),
            seen=tuple((t, p, ts) for t, p, ts in data["seen"]),
        )


def advance(
    state: WatermarkState,
    topics: Sequence[TopicParams],
    report: BatchReport,
    batch_time: int,
    read_to_end: Mapping[Place, bool],
) -> WatermarkState:
    """Return the watermark after a batch.

    Args:
        state: Before the batch.
        topics: The topics of the flow; only event topics count.
        report: What the batch read.
        batch_time: Epoch milliseconds.
        read_to_end: Every source partition, and whether it was read to its end.
    """
    events = [topic for topic in topics if not topic.dimension]
    if not events:
        return replace(state, value=_later(state.value, batch_time))
    names = {topic.name for topic in events}
    latest = {(t, p): ts for t, p, ts in state.latest}
    seen = {(t, p): ts for t, p, ts in state.seen}
    for place in read_to_end:
        if place[0] in names:
            seen.setdefault(place, batch_time)
    for place, partition in report.partitions.items():
        if place[0] in names and partition.max_ts is not None:
            latest[place] = max(latest.get(place, partition.max_ts), partition.max_ts)
            seen[place] = batch_time
    marks, counting, idle_since = _marks(events, latest, seen, batch_time, read_to_end)
    value, base = state.value, state.base
    if counting:
        if len(marks) == counting:
            value = _later(value, min(marks))
        base = value
    else:
        base = min(_known(events, latest), default=None) if base is None else base
    if not counting and base is not None:
        value = _later(value, base + max(0, batch_time - idle_since))
    return WatermarkState(value=value, base=base, latest=_rows(latest), seen=_rows(seen))


def _marks(
    events: Sequence[TopicParams],
    latest: Mapping[Place, int],
    seen: Mapping[Place, int],
    batch_time: int,
    read_to_end: Mapping[Place, bool],
) -> tuple[list[int], int, int]:
    """Return the marks of the topics that count, how many count, and when the last went idle."""
    marks: list[int] = []
    counting = 0
    idle_since = 0
    for topic in events:
        active: list[int | None] = []
        for place in (place for place in seen if place[0] == topic.name):
            idle_at = seen[place] + topic.idle_timeout
            if read_to_end.get(place, False) and batch_time >= idle_at:
                idle_since = max(idle_since, idle_at)
            else:
                active.append(latest.get(place))
        if not active:
            continue
        counting += 1
        known = [ts for ts in active if ts is not None]
        if len(known) == len(active):
            marks.append(min(known) - topic.lateness)
    return marks, counting, idle_since


def _known(events: Sequence[TopicParams], latest: Mapping[Place, int]) -> list[int]:
    lateness = {topic.name: topic.lateness for topic in events}
    return [ts - lateness[topic] for (topic, _), ts in latest.items()]


def holder(
    state: WatermarkState,
    topics: Sequence[TopicParams],
    batch_time: int,
    read_to_end: Mapping[Place, bool],
) -> tuple[Place, int | None] | None:
    """Return which partition holds the watermark where it is, and its greatest event time.

    None: no partition counts. A partition without a record holds it more than any other.

    Args:
        state: After a batch.
        topics: The topics of the flow.
        batch_time: Epoch milliseconds of that batch.
        read_to_end: Every source partition, and whether it was read to its end.
    """
    latest = {(t, p): ts for t, p, ts in state.latest}
    seen = {(t, p): ts for t, p, ts in state.seen}
    marks: list[tuple[int, Place]] = []
    for topic in topics:
        for place in (place for place in seen if place[0] == topic.name and not topic.dimension):
            idle = batch_time >= seen[place] + topic.idle_timeout
            if not (idle and read_to_end.get(place, False)):
                known = latest.get(place)
                marks.append((-END if known is None else known - topic.lateness, place))
    if not marks:
        return None
    place = min(marks)[1]
    return place, latest.get(place)


def next_change(
    state: WatermarkState,
    topics: Sequence[TopicParams],
    read_to_end: Mapping[Place, bool],
    now: int,
) -> WatermarkState:
    """Return what the watermark would be after an empty batch at `now`."""
    return advance(state, topics, BatchReport(), now, read_to_end)


def without(state: WatermarkState, places: frozenset[Place]) -> WatermarkState:
    """Return the watermark without partitions that are no more: they would hold it for ever."""
    return replace(
        state,
        latest=tuple(row for row in state.latest if row[:2] not in places),
        seen=tuple(row for row in state.seen if row[:2] not in places),
    )


def _later(value: int | None, other: int) -> int:
    return other if value is None else max(value, other)


def _rows(values: Mapping[Place, int]) -> tuple[tuple[str, int, int], ...]:
    return tuple((topic, partition, ts) for (topic, partition), ts in sorted(values.items()))
