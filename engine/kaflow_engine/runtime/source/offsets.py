"""Offset ranges: arithmetic, and the JSON that Spark reads and writes."""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

from kaflow_engine.runtime.failures.failures import DataLost
from kaflow_engine.state.log.batch_log import Offsets, Ranges, TopicIds

V = TypeVar("V")

HEADER_LINES = 2
"""Lines of a file of Spark's offset log before those of the sources."""


def ends_of(ranges: Ranges) -> Offsets:
    """Return where ranges end."""
    return {t: {p: end for p, (_, end) in ps.items()} for t, ps in ranges.items()}


def ranges_between(start: Offsets, end: Offsets) -> Ranges:
    """Return the range of every partition in either; one that begins or ends nowhere is empty.

    A partition without a start is new in its topic, so it starts at 0.
    """
    found: Ranges = {}
    for topic in sorted(start.keys() | end.keys()):
        starts, stops = start.get(topic, {}), end.get(topic, {})
        found[topic] = {
            p: (starts.get(p, 0), stops.get(p, starts.get(p, 0)))
            for p in sorted(starts.keys() | stops.keys())
        }
    return found


def empty_ranges(at: Offsets) -> Ranges:
    """Return ranges that hold nothing, where `at` stands."""
    return ranges_between(at, at)


def merged(first: Offsets, second: Offsets) -> Offsets:
    """Return both; the second wins."""
    return {t: {**first.get(t, {}), **second.get(t, {})} for t in first.keys() | second.keys()}


def only(offsets: Mapping[str, V], topics: frozenset[str]) -> dict[str, V]:
    """Return the offsets, or what else there is by topic, of some topics."""
    return {topic: ps for topic, ps in offsets.items() if topic in topics}


def unread(at: Offsets, goal: Offsets) -> Offsets:
    """Return what of a goal has not been read, of the partitions that are read at all.

    >>> unread({"a": {0: 5, 1: 5}}, {"a": {0: 5, 1: 9, 2: 9}, "b": {0: 1}})
    {'a': {1: 9}}
    """
    left = {t: {p: end for p, end in ps.items() if at.get(t, {}).get(p, end) < end}
            for t, ps in goal.items()}  # fmt: skip
    return {topic: ps for topic, ps in left.items() if ps}


def at_most(offsets: Offsets, ends: Offsets) -> Offsets:
    """Return offsets of which none lies beyond its end.

    >>> at_most({"a": {0: 5, 1: 5}}, {"a": {0: 3, 1: 9}})
    {'a': {0: 3, 1: 5}}
    """
    return {t: {p: min(at, ends[t][p]) for p, at in ps.items()} for t, ps in offsets.items()}


def size_of(ranges: Ranges) -> int:
    """Return how many offsets ranges hold: at least as many as records."""
    return sum(end - start for ps in ranges.values() for start, end in ps.values())


def reaches(at: Offsets, goal: Offsets) -> bool:
    """Tell whether every partition of `goal` has been read that far."""
    return all(at.get(t, {}).get(p, 0) >= end for t, ps in goal.items() for p, end in ps.items())


def read_to_end(ranges: Ranges, ends: Offsets) -> tuple[tuple[str, int], ...]:
    """Return the partitions that ranges read to the ends the broker named."""
    return tuple(
        (topic, partition)
        for topic, ps in sorted(ranges.items())
        for partition, (_, end) in sorted(ps.items())
        if end >= ends.get(topic, {}).get(partition, end + 1)
    )


def next_cut(start: Offsets, goal: Offsets, most: int) -> Ranges:
    """Return the next ranges on the way to a goal, of at most about `most` offsets.

    Each partition gets its share of what is left, and at least one offset.
    """
    left = {t: {p: max(g - start.get(t, {}).get(p, 0), 0) for p, g in ps.items()}
            for t, ps in goal.items()}  # fmt: skip
    total = sum(count for ps in left.values() for count in ps.values())
    found: Ranges = {}
    for topic, ps in left.items():
        found[topic] = {}
        for partition, count in ps.items():
            first = start.get(topic, {}).get(partition, 0)
            share = count if total <= most else min(count, max(1, count * most // total))
            found[topic][partition] = (first, first + share)
    return found


def before_topics(at: Offsets, ends: Offsets, taken_over: Offsets) -> Offsets:
    """Return ends of which none lies beyond the end of a history that is still being read.

    >>> before_topics({"a": {0: 5, 1: 9}}, {"a": {0: 12, 1: 12}}, {"a": {0: 8, 1: 9}})
    {'a': {0: 8, 1: 12}}
    """
    return {
        topic: {
            p: min(end, until)
            if at.get(topic, {}).get(p, 0) < (until := taken_over.get(topic, {}).get(p, 0))
            else end
            for p, end in ps.items()
        }
        for topic, ps in ends.items()
    }


def spark_offsets(offsets: Mapping[str, Mapping[int, int]]) -> str:
    """Return offsets as Spark's options take them.

    >>> spark_offsets({"a": {0: 5}})
    '{"a": {"0": 5}}'
    """
    return json.dumps({t: {str(p): o for p, o in ps.items()} for t, ps in offsets.items()})


def spark_partitions(ranges: Ranges) -> str:
    """Return the partitions of ranges as Spark's option `assign` takes them."""
    return json.dumps({topic: sorted(ps) for topic, ps in ranges.items()})


def logged_ends(checkpoint: Path, batch: int) -> Offsets:
    """Return where a batch of a running query ends, from the offset log of Spark's checkpoint."""
    lines = (checkpoint / "offsets" / str(batch)).read_text(encoding="utf-8").splitlines()
    found: dict[str, dict[str, int]] = json.loads(lines[HEADER_LINES])
    return {t: {int(p): offset for p, offset in ps.items()} for t, ps in found.items()}


@dataclass(frozen=True, slots=True, kw_only=True)
class Loss:
    """A partition that does not hold what is to be read from it next."""

    topic: str
    partition: int
    needed: int
    """The offset that comes next."""
    first: int | None
    """The first offset there is; None: there is no such partition any more."""
    end: int | None
    """The end, open transactions included."""
    ids: tuple[str, str] | None = None
    """The topic's id when it was read, and its id now; None: it is the same topic, or no id is
    known."""

    @property
    def is_behind(self) -> bool:
        """Whether records were removed at the start, as retention does."""
        return self.ids is None and self.first is not None and self.needed < self.first


Recreated = Mapping[str, tuple[str, str]]
"""Topics that were deleted and created again, each with its id before and its id now."""


def recreated(before: TopicIds, now: TopicIds) -> dict[str, tuple[str, str]]:
    """Return the topics whose ids are known and differ.

    >>> recreated({"a": "1", "b": "2", "c": "3"}, {"a": "1", "b": "9", "d": "4"})
    {'b': ('2', '9')}
    """
    both = before.keys() & now.keys()
    return {topic: (before[topic], now[topic]) for topic in both if before[topic] != now[topic]}


def with_added_partitions(at: Offsets, counts: Mapping[str, int]) -> Offsets:
    """Return offsets with every partition there is; one that was added begins at 0."""
    return merged({topic: dict.fromkeys(range(count), 0) for topic, count in counts.items()}, at)


def losses_of(
    needed: Offsets, first: Offsets, end: Offsets, another: Recreated | None = None
) -> tuple[Loss, ...]:
    """Return the partitions that do not hold what is to be read next.

    Args:
        needed: The next offset of each partition.
        first: The first offset that the broker still has.
        end: The end offsets, open transactions included.
        another: Topics that are not those that were read: nothing of those is left.
    """
    found: list[Loss] = []
    for topic, ps in sorted(needed.items()):
        ids = (another or {}).get(topic)
        for partition, offset in sorted(ps.items()):
            low, high = first.get(topic, {}).get(partition), end.get(topic, {}).get(partition)
            if ids or low is None or high is None or not low <= offset <= high:
                found.append(
                    Loss(
                        topic=topic,
                        partition=partition,
                        needed=offset,
                        first=low,
                        end=high,
                        ids=ids,
                    )
                )
    return tuple(found)


def loss_error(loss: Loss) -> DataLost:
    """Say what is gone, and what can be done."""
    place = f"topic '{loss.topic}', partition {loss.partition}"
    go_on = f"to go on without them set topics.{loss.topic}.on_data_loss: continue"
    if loss.first is None or loss.end is None:
        return DataLost(
            f"{place} is gone: it was read up to offset {loss.needed}",
            hint=f"the topic was recreated; start a new state to read it again, or {go_on}",
        )
    if loss.ids is not None:
        before, now = loss.ids
        return DataLost(
            f"{place}: offset {loss.needed} comes next, but the topic was recreated: it had the id "
            f"{before}, and the one with the id {now} begins at {loss.first} and ends at "
            f"{loss.end}",
            hint=f"start a new state to read it; {go_on}, from offset {loss.first}",
        )
    if loss.is_behind:
        return DataLost(
            f"{place}: offset {loss.needed} comes next, but the first that is left is "
            f"{loss.first}: {loss.first - loss.needed} offsets are lost",
            hint="the topic's retention passed the pipeline; keep records longer (retention.ms), "
            f"and {go_on}",
        )
    return DataLost(
        f"{place}: offset {loss.needed} comes next, but the topic begins at {loss.first} and ends "
        f"at {loss.end}",
        hint="the topic was recreated or truncated; start a new state to read it; "
        f"{go_on}, from offset {loss.first}",
    )


def assert_readable(needed: Offsets, first: Offsets, end: Offsets) -> None:
    """Check that what is to be read next is still there.

    Raises:
        DataLost: It is not; names the first such partition with the numbers.
    """
    for loss in losses_of(needed, first, end):
        raise loss_error(loss)
