"""Records that were to be read next and are gone: an error, or counted and passed over."""

import logging
from collections import Counter
from collections.abc import Mapping
from dataclasses import replace

from kaflow_engine.connectors.kafka_admin import offsets
from kaflow_engine.connectors.kafka_client import KafkaSettings
from kaflow_engine.operators.params import Plan
from kaflow_engine.runtime.failures import DataLost
from kaflow_engine.runtime.history import Histories, still_ahead
from kaflow_engine.runtime.offsets import Loss, loss_error, losses_of, merged, only
from kaflow_engine.runtime.record_source import split
from kaflow_engine.runtime.standing import Standing
from kaflow_engine.runtime.watch import Watch
from kaflow_engine.state.log import BatchRecord, Offsets, Ranges

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
    kafka: KafkaSettings,
    plan: Plan,
    standing: Standing,
    counts: Mapping[str, int],
    watch: Watch,
    histories: Histories,
    record: BatchRecord | None = None,
) -> tuple[Standing, Ranges | None]:
    """Return where the pipeline goes on, what was lost counted.

    Args:
        kafka: Where the topics are.
        plan: Says what to do about losses, by topic.
        standing: Where the pipeline stands.
        counts: The partitions of its topics.
        watch: Told of losses.
        histories: Files hold what is missing before they end.
        record: The batch that is run again; None: a new one comes next.

    Returns:
        The standing, and what is left of the ranges of `record` where that is not all.

    Raises:
        DataLost: Records are gone under `on_data_loss: fail`; says which.
    """
    first = offsets(kafka, counts, "earliest")
    end = offsets(kafka, counts, "latest", committed=False)
    at = only(standing.offsets, frozenset(counts))
    ranges = record.ranges if record is not None else None
    ahead = still_ahead(at, histories)

    def is_ahead(loss: Loss) -> bool:
        return loss.partition in ahead.get(loss.topic, {})

    if ranges is None:
        losses = losses_of(merged(at, ahead), first, end)
    else:
        losses = _within(split(ranges, histories)[1], first, end)
    forgiving = {topic.name for topic in plan.topics if topic.on_data_loss == "continue"}
    at_stake = topic_at_stake(plan)
    for loss in losses:
        error = (gap_error if is_ahead(loss) else loss_error)(loss)
        if loss.topic == at_stake:
            raise DataLost(error.message, hint=_AT_STAKE)
        if loss.topic not in forgiving:
            raise error
    # a gap behind a history is passed over when the history has been read
    losses = tuple(loss for loss in losses if not is_ahead(loss))
    counted = Counter(standing.counters)
    if ranges is None:
        moved, gone = moved_past(at, losses, counted)
        after = replace(standing, offsets={**standing.offsets, **moved}, counters=dict(counted))
        return _told(after, gone, watch), None
    left, gone = left_of(at, ranges, losses, counted)
    after = replace(standing, counters=dict(counted))
    return _told(after, gone, watch), left


def topic_at_stake(plan: Plan) -> str | None:
    """Return the topic of which no record may be lost, whatever the author says.

    A backfill would remove the rows that the stream has made of such records, and put none in their
    place.
    """
    wanted = plan.backfill
    if wanted is None or wanted.force or plan.finish.table is None:
        return None
    return plan.topics[plan.driving.topic].name


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
        hint="these are the files of another topic, or it was made anew; mend history.path",
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
    at: Offsets, ranges: Ranges, losses: tuple[Loss, ...], counters: Counter[str]
) -> tuple[Ranges | None, list[str]]:
    """Return what is left of the ranges of a batch, None if all is; what is gone is counted.

    Where the ranges begin behind `at`, a loss was passed over when they were logged; the count of
    it went with the run that logged them.
    """
    for topic, parts in ranges.items():
        for partition, (start, _) in parts.items():
            known = at.get(topic, {}).get(partition, start)
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


def _within(ranges: Ranges, first: Offsets, end: Offsets) -> tuple[Loss, ...]:
    """Return the losses inside of ranges; empty ones lose nothing."""
    filled = {t: {p: r for p, r in ps.items() if r[1] > r[0]} for t, ps in ranges.items()}
    starts = {t: {p: start for p, (start, _) in ps.items()} for t, ps in filled.items()}
    stops = {t: {p: stop for p, (_, stop) in ps.items()} for t, ps in filled.items()}
    behind = losses_of(starts, first, end)
    places = {(loss.topic, loss.partition) for loss in behind}
    ahead = (
        loss
        for loss in losses_of(stops, first, end)
        if not loss.is_behind and (loss.topic, loss.partition) not in places
    )
    return (*behind, *ahead)


def _told(standing: Standing, said: list[str], watch: Watch) -> Standing:
    for text in said:
        LOGGER.warning("goes on without lost records: %s", text)
    if said:
        watch.say(counters=standing.counters)
    return standing
