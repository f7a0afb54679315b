"""Data loss: records that were deleted before they were read fail the run, or are counted."""

import logging
from collections import Counter
from collections.abc import Mapping
from dataclasses import replace

from kaflow_engine.flow.chains.chain import driving_topics
from kaflow_engine.flow.flow import Flow
from kaflow_engine.flow.graph import table_sinks
from kaflow_engine.operators.watermark import Place, without
from kaflow_engine.runtime.batch.position import Position
from kaflow_engine.runtime.batch.progress import Watch
from kaflow_engine.runtime.failures.failures import DataLost
from kaflow_engine.runtime.source.history import Histories, still_ahead
from kaflow_engine.runtime.source.inputs import Inputs
from kaflow_engine.runtime.source.offsets import (
    Loss,
    Recreated,
    loss_error,
    losses_of,
    merged,
    only,
    recreated,
    with_added_partitions,
)
from kaflow_engine.runtime.source.record_source import split
from kaflow_engine.state.log.batch_log import BatchRecord, Offsets, Ranges

LOGGER = logging.getLogger("kaflow.runtime")

LOST = "lost"
"""Counter: offsets that were gone before they were read."""
RESTARTED = "restarted_partitions"
"""Counter: partitions of recreated topics, read from their start."""

_AT_STAKE = (
    "the table may have rows of these records: add --restart to begin the backfill behind them, so "
    "that their rows stay, or --force to replace them without"
)


def settle_losses(
    inputs: Inputs,
    plan: Flow,
    standing: Position,
    counts: Mapping[str, int],
    watch: Watch,
    histories: Histories,
    record: BatchRecord | None = None,
) -> tuple[Position, Ranges | None]:
    """Return where the pipeline goes on, what was lost counted.

    Args:
        inputs: What it reads.
        plan: Says what to do about losses, by topic.
        standing: Where the pipeline stands.
        counts: The partitions of its topics.
        watch: Called with losses.
        histories: Files hold what is missing before they end.
        record: The batch that is run again; None: a new one comes next.

    Returns:
        The standing, and what is left of the ranges of `record` where that is not all.

    Raises:
        DataLost: Records are gone under `on_data_loss: fail`; says which.
    """
    ids = inputs.ids(counts)  # first: what is recreated from here on is seen at the next look
    first = inputs.offsets(counts, "earliest")
    end = inputs.offsets(counts, "latest", committed=False)
    known = standing.topic_ids if record is None else {**standing.topic_ids, **record.topic_ids}
    another = recreated(known, ids)
    at = only(standing.offsets, frozenset(counts))
    if record is None and plan.backfill is None:
        same = {topic: count for topic, count in counts.items() if topic not in another}
        at = with_added_partitions(at, same)
    ahead = still_ahead(at, histories)
    forgiving = {topic.name for topic in plan.sources if topic.on_data_loss == "continue"}

    def is_ahead(loss: Loss) -> bool:
        return loss.partition in ahead.get(loss.topic, {})

    if record is None:
        losses = losses_of(merged(at, ahead), first, end, another)
    else:
        losses = _within(split(record.ranges, histories)[1], first, end, another)
    at_stake = topics_at_stake(plan)
    for loss in losses:
        between = is_ahead(loss) and loss.ids is None
        if plan.backfill is not None and not between and not loss.is_behind:
            raise bounds_error(loss)
        error = (gap_error if between else loss_error)(loss)
        if loss.topic in at_stake:
            raise DataLost(error.message, hint=_AT_STAKE)
        if loss.topic not in forgiving:
            raise error
    counted = Counter(standing.counters)
    if record is not None:
        passed = recreated(standing.topic_ids, record.topic_ids)
        left, gone = left_of(at, record.ranges, losses, counted, frozenset(passed))
        return _with_warnings(replace(standing, counters=dict(counted)), gone, watch), left
    # a topic is not left, and a gap is not passed over, before the files of its history are read
    later = another.keys() & {topic for topic, ps in ahead.items() if ps}
    losses = tuple(loss for loss in losses if not (is_ahead(loss) or loss.topic in later))
    moved, gone = moved_past(at, losses, counted)
    moved |= {topic: dict(first[topic]) for topic in another.keys() - later}
    after = replace(
        standing,
        offsets={**standing.offsets, **moved},
        topic_ids={**standing.topic_ids, **{t: i for t, i in ids.items() if t not in later}},
        watermark=without(standing.watermark, _vanished(at, moved)),
        counters=dict(counted),
    )
    return _with_warnings(after, gone, watch), None


def bounds_error(loss: Loss) -> DataLost:
    """Say that a backfill cannot go on: it reads up to offsets of a topic that is gone."""
    return DataLost(
        loss_error(loss).message,
        hint="a backfill reads between two offsets of one topic: drop the state of this backfill "
        "(`kaflow state drop`), and begin it again",
    )


def topics_at_stake(plan: Flow) -> frozenset[str]:
    """Return the topics of which no record may be lost, whatever the author says.

    A backfill would remove the rows that the stream has made of such records, and put none in their
    place.
    """
    wanted = plan.backfill
    if wanted is None or wanted.force:
        return frozenset()
    return frozenset(
        topic.name for sink in table_sinks(plan) for topic in driving_topics(plan, sink)
    )


def gap_error(loss: Loss) -> DataLost:
    """Say that a topic does not go on where its history ends."""
    ends = f"the history of topic '{loss.topic}' ends at offset {loss.needed} of partition "
    ends += str(loss.partition)
    if loss.first is not None and loss.is_behind:
        return DataLost(
            f"{ends}, but the first that the topic has is {loss.first}: "
            f"{loss.first - loss.needed} offsets are in neither",
            hint="add the files with these records; to go on without them set "
            f"topics.{loss.topic}.on_data_loss: continue",
        )
    return DataLost(
        f"{ends}, but the topic ends at {loss.end or 0}",
        hint="these are the files of another topic, or it was recreated; fix history.path",
    )


def moved_past(
    at: Offsets, losses: tuple[Loss, ...], counters: Counter[str]
) -> tuple[Offsets, list[str]]:
    """Return where to go on behind losses, which are counted, and what to say of them."""
    found = {topic: dict(ps) for topic, ps in at.items()}
    said: list[str] = []
    for loss in losses:
        if loss.first is None:
            del found[loss.topic][loss.partition]
            counters[RESTARTED] += 1
        elif loss.is_behind:
            found[loss.topic][loss.partition] = loss.first
            counters[LOST] += loss.first - loss.needed
        else:
            found[loss.topic][loss.partition] = loss.first
            counters[RESTARTED] += 1
        said.append(loss_error(loss).message)
    return found, said


def left_of(
    at: Offsets,
    ranges: Ranges,
    losses: tuple[Loss, ...],
    counters: Counter[str],
    another: frozenset[str] = frozenset(),
) -> tuple[Ranges | None, list[str]]:
    """Return what is left of the ranges of a batch, None if all is; what is gone is counted.

    Where the ranges begin behind `at`, or belong to `another` topic, a loss was passed over when
    they were logged; the count of it went with the run that logged them.
    """
    for topic, parts in ranges.items():
        for partition, (start, _) in parts.items():
            known = at.get(topic, {}).get(partition, start)
            if topic in another:
                counters[RESTARTED] += int(partition in at.get(topic, {}))
            else:
                counters[LOST] += max(start - known, 0)
                counters[RESTARTED] += int(start < known)
    if not counters[RESTARTED]:
        del counters[RESTARTED]
    if not counters[LOST]:
        del counters[LOST]
    if not losses:
        return None, []
    left = {topic: dict(parts) for topic, parts in ranges.items()}
    said: list[str] = []
    for loss in losses:
        start, stop = ranges[loss.topic][loss.partition]
        low = stop if loss.first is None else min(max(loss.first, start), stop)
        if loss.first is None or not loss.is_behind:
            low = stop  # another topic of the same name: its records are read by later batches
        left[loss.topic][loss.partition] = (low, stop)
        counters[LOST] += low - start
        said.append(loss_error(loss).message)
    return left, said


def _within(
    ranges: Ranges, first: Offsets, end: Offsets, another: Recreated | None = None
) -> tuple[Loss, ...]:
    """Return the losses inside of ranges; empty ones lose nothing."""
    filled = {t: {p: r for p, r in ps.items() if r[1] > r[0]} for t, ps in ranges.items()}
    starts = {t: {p: start for p, (start, _) in ps.items()} for t, ps in filled.items()}
    stops = {t: {p: stop for p, (_, stop) in ps.items()} for t, ps in filled.items()}
    behind = losses_of(starts, first, end, another)
    places = {(loss.topic, loss.partition) for loss in behind}
    ahead = (
        loss
        for loss in losses_of(stops, first, end)
        if not loss.is_behind and (loss.topic, loss.partition) not in places
    )
    return (*behind, *ahead)


def _vanished(before: Offsets, after: Offsets) -> frozenset[Place]:
    """Return the partitions that are no more, in topics that were recreated with fewer."""
    return frozenset((t, p) for t, ps in before.items() for p in ps if p not in after[t])


def _with_warnings(standing: Position, said: list[str], watch: Watch) -> Position:
    for text in said:
        LOGGER.warning("goes on without lost records: %s", text)
    if said:
        watch.say(counters=standing.counters)
    return standing
