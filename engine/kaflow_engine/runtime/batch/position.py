"""The position of a pipeline between two batches: all that the next one depends on."""

from collections import Counter
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from kaflow_engine.operators.rows.reports import BATCH_TIME, BatchReport
from kaflow_engine.operators.watermark import WatermarkState, of_topics
from kaflow_engine.runtime.clock.ticks import clocks_at, due_chains
from kaflow_engine.runtime.source.offsets import ends_of, merged, only, recreated
from kaflow_engine.state.log.batch_log import (
    FIRST,
    BatchLog,
    BatchRecord,
    Offsets,
    StateRecord,
    TopicIds,
)
from kaflow_engine.state.storage.store import Damaged


@dataclass(frozen=True, slots=True, kw_only=True)
class Position:
    """Where a pipeline is after all batches so far."""

    batch: int
    """The last one that was committed."""
    batch_time: int
    """Epoch milliseconds; it never goes back."""
    offsets: Offsets
    """What each source partition is read from next."""
    topic_ids: TopicIds = field(default_factory=dict[str, str])
    """Of the topics that `offsets` belong to."""
    watermark: WatermarkState = field(default_factory=WatermarkState)
    next_due: Mapping[int, int] = field(default_factory=dict[int, int])
    """By chain, or BATCH_TIME: the watermark behind which something falls due; a lower bound."""
    counters: Mapping[str, int] = field(default_factory=dict[str, int])
    """Since the state was created."""
    states: dict[str, dict[str, Any]] = field(default_factory=dict[str, dict[str, Any]])
    """Of plugins."""


def load_standing(log: BatchLog, state: StateRecord) -> Position:
    """Return where the batch log ends."""
    commit = log.last_commit()
    if commit is None:
        return Position(
            batch=FIRST - 1, batch_time=0, offsets=state.start, topic_ids=state.topic_ids
        )
    batch = log.load_batch(commit.number)
    if commit.epoch < batch.epoch:
        raise Damaged(
            f"batch {batch.number} was committed as run {commit.epoch} cut it, and run "
            f"{batch.epoch} has cut it again",
            hint="two runs wrote this state at once; restore the whole directory from one backup",
        )
    counting = _counting(state, batch.number)
    ids = only(batch.topic_ids, counting)
    another = recreated(state.topic_ids, ids)
    start = {topic: ps for topic, ps in state.start.items() if topic not in another}
    return Position(
        batch=commit.number,
        batch_time=batch.batch_time,
        offsets=merged(start, only(ends_of(batch.ranges), counting)),
        topic_ids={**state.topic_ids, **ids},
        watermark=of_topics(WatermarkState.from_json(commit.watermark), counting),
        next_due=commit.next_due,
        counters=commit.counters,
        states=commit.states,
    )


def as_the_state_reads(standing: Position, state: StateRecord) -> Position:
    """Return a position without topics that are read no more, those that came since at their start.

    Batches of an earlier plan, which are run again, leave behind what they read.
    """
    counting = _counting(state, standing.batch)
    return replace(
        standing,
        offsets={**state.start, **only(standing.offsets, counting)},
        topic_ids={**state.topic_ids, **only(standing.topic_ids, counting)},
        watermark=of_topics(standing.watermark, counting),
    )


def _counting(state: StateRecord, batch: int) -> frozenset[str]:
    """Return the topics of a state that a batch has read for it."""
    return frozenset(
        topic for topic in state.start if state.added_behind.get(topic, FIRST - 1) < batch
    )


def next_due(
    standing: Position, batch: BatchRecord, report: BatchReport, numbers: Collection[int]
) -> dict[int, int]:
    """Return what falls due next in each chain after a batch.

    A batch that looked into the time index of a chain reports what is left there; otherwise what
    was known before still stands. Entries may have been deleted since: it is a lower bound.

    Args:
        standing: Before the batch.
        batch: Its record.
        report: What it did.
        numbers: The chains that there are.
    """
    looked = due_chains(clocks_at(batch.watermark, batch.batch_time), standing.next_due)
    found = {chain: due for chain, due in standing.next_due.items() if chain not in looked}
    for chain, due in report.next_due.items():
        found[chain] = min(due, found.get(chain, due))
    known = sorted({BATCH_TIME, *numbers})
    return {chain: found[chain] for chain in known if chain in found}


def counted(before: Mapping[str, int], report: BatchReport) -> dict[str, int]:
    """Return the counters after a batch."""
    total = Counter(before)
    total.update(report.counters)
    return dict(sorted(total.items()))
