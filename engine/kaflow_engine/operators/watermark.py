"""The watermark: how far event time has come, as a pure function of what batches read."""

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from kaflow_engine.flow.sources import TopicParams, topic_of_clock
from kaflow_engine.operators.rows.reports import BatchReport
from kaflow_engine.state.log.by_chain import from_stored, known, least, to_stored

END = 1 << 61
"""The watermark at the end of a bounded run: after every event time."""

Place = tuple[str, int]
"""A topic and one of its partitions."""

Clocks = Mapping[int, Sequence[TopicParams]]
"""The topics that the watermark of each chain follows, each by one of its clocks, by the number of
the chain."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Mark:
    """How far the event time of one chain has come, in epoch milliseconds."""

    value: int | None = None
    """The watermark; None before the first record of every event topic."""
    base: int | None = None
    """Its last value while some topic counted."""


@dataclass(frozen=True, slots=True, kw_only=True)
class WatermarkState:
    """Event time of each chain and source partition; all times in epoch milliseconds."""

    marks: Mapping[int, Mark] = field(default_factory=lambda: {0: Mark()})
    """By the number of the chain."""
    latest: tuple[tuple[str, int, int], ...] = ()
    """(clock of a topic, partition, greatest event time)."""
    seen: tuple[tuple[str, int, int], ...] = ()
    """(clock of a topic, partition, batch time of its last record, or of the first batch)."""

    @property
    def values(self) -> dict[int, int]:
        """The watermarks by chain; absent before the first record of every event topic of it."""
        return known({chain: mark.value for chain, mark in self.marks.items()})

    @property
    def least(self) -> int | None:
        """The watermark of the chain that is behind the others; None while one has none."""
        return least({number: mark.value for number, mark in self.marks.items()})

    def to_json(self) -> dict[str, Any]:
        """Return plain data for the batch log."""
        return {
            "value": to_stored({chain: mark.value for chain, mark in self.marks.items()}),
            "base": to_stored({chain: mark.base for chain, mark in self.marks.items()}),
            "latest": [list(row) for row in self.latest],
            "seen": [list(row) for row in self.seen],
        }

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> "WatermarkState":
        """Read what `to_json` wrote."""
        value, base = from_stored(data["value"]), from_stored(data["base"])
        numbers = value.keys() | base.keys() or {0}
        return cls(
            marks={n: Mark(value=value.get(n), base=base.get(n)) for n in sorted(numbers)},
            latest=tuple((t, p, ts) for t, p, ts in data["latest"]),
            seen=tuple((t, p, ts) for t, p, ts in data["seen"]),
        )


def advance(
    state: WatermarkState,
    clocks: Clocks,
    report: BatchReport,
    batch_time: int,
    read_to_end: Mapping[Place, bool],
) -> WatermarkState:
    """Return the watermarks after a batch, of the chains that there are.

    Args:
        state: Before the batch.
        clocks: Of the flow; only event topics count.
        report: What the batch read.
        batch_time: Epoch milliseconds.
        read_to_end: Every source partition, and whether it was read to its end.
    """
    names = {topic.clock_name for topics in clocks.values() for topic in _events(topics)}
    latest = {(t, p): ts for t, p, ts in state.latest if t in names}
    seen = {(t, p): ts for t, p, ts in state.seen if t in names}
    for name in names:
        for topic, partition in read_to_end:
            if topic == topic_of_clock(name):
                seen.setdefault((name, partition), batch_time)
    for place, ts in report.times.items():
        if place[0] in names:
            latest[place] = max(latest.get(place, ts), ts)
            seen[place] = batch_time
    marks = {
        chain: _advanced(
            state.marks.get(chain, Mark()), _events(topics), latest, seen, batch_time, read_to_end
        )
        for chain, topics in sorted(clocks.items())
    }
    return WatermarkState(marks=marks, latest=_rows(latest), seen=_rows(seen))


def _advanced(
    mark: Mark,
    events: Sequence[TopicParams],
    latest: Mapping[Place, int],
    seen: Mapping[Place, int],
    batch_time: int,
    read_to_end: Mapping[Place, bool],
) -> Mark:
    """Return the mark of a chain after a batch, of which `latest` and `seen` know."""
    if not events:
        return replace(mark, value=_later(mark.value, batch_time))
    marks, counting, idle_since = _marks(events, latest, seen, batch_time, read_to_end)
    value, base = mark.value, mark.base
    if counting:
        if len(marks) == counting:
            value = _later(value, min(marks))
        base = value
    else:
        base = min(_known(events, latest), default=None) if base is None else base
    if not counting and base is not None:
        value = _later(value, base + max(0, batch_time - idle_since))
    return Mark(value=value, base=base)


def ended(state: WatermarkState, numbers: Iterable[int]) -> WatermarkState:
    """Return the watermarks of these chains at the end of a bounded run."""
    marks = {n: replace(state.marks.get(n, Mark()), value=END) for n in sorted(numbers)}
    return replace(state, marks=marks)


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
        for place in (place for place in seen if place[0] == topic.clock_name):
            idle_at = seen[place] + topic.idle_timeout
            if read_to_end.get((topic.name, place[1]), False) and batch_time >= idle_at:
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
    lateness = {topic.clock_name: topic.lateness for topic in events}
    return [ts - lateness[clock] for (clock, _), ts in latest.items() if clock in lateness]


def _events(topics: Sequence[TopicParams]) -> tuple[TopicParams, ...]:
    return tuple(topic for topic in topics if not topic.dimension)


def holder(
    state: WatermarkState,
    clocks: Clocks,
    batch_time: int,
    read_to_end: Mapping[Place, bool],
) -> tuple[Place, int | None] | None:
    """Return which partition holds the least watermark where it is, and its greatest event time.

    None: no partition of that chain counts. A partition without a record holds it more than any
    other.

    Args:
        state: After a batch.
        clocks: Of the flow.
        batch_time: Epoch milliseconds of that batch.
        read_to_end: Every source partition, and whether it was read to its end.
    """
    latest = {(t, p): ts for t, p, ts in state.latest}
    seen = {(t, p): ts for t, p, ts in state.seen}
    marks: list[tuple[int, Place]] = []
    for topic in _events(clocks[last_chain(state, clocks)]):
        for place in (place for place in seen if place[0] == topic.clock_name):
            idle = batch_time >= seen[place] + topic.idle_timeout
            if not (idle and read_to_end.get((topic.name, place[1]), False)):
                known = latest.get(place)
                marks.append((-END if known is None else known - topic.lateness, place))
    if not marks:
        return None
    place = min(marks)[1]
    return place, latest.get(place)


def last_chain(state: WatermarkState, clocks: Clocks) -> int:
    """Return the chain whose watermark is behind the others; of equals the first one."""
    values = state.values
    return min(clocks, key=lambda chain: values.get(chain, -END))


def next_change(
    state: WatermarkState,
    clocks: Clocks,
    read_to_end: Mapping[Place, bool],
    now: int,
) -> WatermarkState:
    """Return what the watermarks would be after an empty batch at `now`."""
    return advance(state, clocks, BatchReport(), now, read_to_end)


def without(state: WatermarkState, places: frozenset[Place]) -> WatermarkState:
    """Return the watermarks without partitions that are no more: they would hold them for ever."""
    return replace(
        state,
        latest=tuple(row for row in state.latest if (topic_of_clock(row[0]), row[1]) not in places),
        seen=tuple(row for row in state.seen if (topic_of_clock(row[0]), row[1]) not in places),
    )


def of_topics(state: WatermarkState, topics: Collection[str]) -> WatermarkState:
    """Return the watermarks without what is known of other topics, which may come back from their
    beginning."""
    return replace(
        state,
        latest=tuple(row for row in state.latest if topic_of_clock(row[0]) in topics),
        seen=tuple(row for row in state.seen if topic_of_clock(row[0]) in topics),
    )


def _later(value: int | None, other: int) -> int:
    return other if value is None else max(value, other)


def _rows(values: Mapping[Place, int]) -> tuple[tuple[str, int, int], ...]:
    return tuple((clock, partition, ts) for (clock, partition), ts in sorted(values.items()))
