"""The position of a pipeline between two batches: all that the next one depends on."""

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field

from kaflow_engine.operators.rows.reports import BatchReport
from kaflow_engine.operators.watermark import WatermarkState
from kaflow_engine.runtime.clock.ticks import is_due
from kaflow_engine.runtime.source.offsets import ends_of, merged, recreated
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
    next_due: int | None = None
    """The watermark behind which something falls due; a lower bound."""
    counters: Mapping[str, int] = field(default_factory=dict[str, int])
    """Since the state was created."""


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
    another = recreated(state.topic_ids, batch.topic_ids)
    start = {topic: ps for topic, ps in state.start.items() if topic not in another}
    return Position(
        batch=commit.number,
        batch_time=batch.batch_time,
        offsets=merged(start, ends_of(batch.ranges)),
        topic_ids={**state.topic_ids, **batch.topic_ids},
        watermark=WatermarkState.from_json(commit.watermark),
        next_due=commit.next_due,
        counters=commit.counters,
    )


def next_due(standing: Position, batch: BatchRecord, report: BatchReport) -> int | None:
    """Return what falls due next after a batch.

    A batch that looked into the time index reports what is left there; otherwise what was known
    before still stands. Entries may have been deleted since: it is a lower bound.
    """
    looked = is_due(batch.watermark, standing.next_due)
    known = None if looked else standing.next_due
    return min((due for due in (known, report.next_due) if due is not None), default=None)


def counted(before: Mapping[str, int], report: BatchReport) -> dict[str, int]:
    """Return the counters after a batch."""
    total = Counter(before)
    total.update(report.counters)
    return dict(sorted(total.items()))
