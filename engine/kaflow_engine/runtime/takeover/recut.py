"""Cuts a batch that fails again and again into smaller ones, if no sink holds any of it."""

import logging
from dataclasses import replace

from kaflow_engine.runtime.batch.run import Run
from kaflow_engine.runtime.source.offsets import ends_of, next_cut, size_of
from kaflow_engine.state.log.batch_log import BatchLog, BatchRecord

LOGGER = logging.getLogger("kaflow.runtime")

TRIES = 2
"""Runs that a batch may fail before it is replaced."""
_PARTS = 4


def recut(run: Run, log: BatchLog, record: BatchRecord) -> BatchRecord:
    """Return the batch that takes the place of one that was left; mostly that one.

    What failed may have needed more memory than there is, so that nothing but less of it helps. A
    batch of which some was delivered must stay what it is.

    Args:
        run: Which runs it; its producers are fenced against.
        log: The batch log; it lacks the batch afterwards if another one takes its place.
        record: The last batch that was left.

    Raises:
        SinkError: A newer run has started, or the broker fails.
    """
    tries = run.runner.epoch - record.epoch
    if tries < TRIES or size_of(record.ranges) <= run.limit.few or run.runner.is_held(record):
        return record
    fewer = smaller(record, run.runner.epoch)
    LOGGER.warning(
        "batch %d of pipeline '%s' was begun by %d runs and none has finished it; it is cut again, "
        "to %d of %d offsets",
        record.number,
        run.plan.name,
        tries,
        size_of(fewer.ranges),
        size_of(record.ranges),
    )
    # a run that ends in between leaves one cut or the other, in the log and in the topic
    log.store.delete(f"batches/{record.number}.json")
    if run.runner.kept is not None:
        run.runner.kept.put(fewer)
    return fewer


def smaller(record: BatchRecord, epoch: int) -> BatchRecord:
    """Return the first part of a batch, as a run of this epoch begins it."""
    starts = {t: {p: start for p, (start, _) in ps.items()} for t, ps in record.ranges.items()}
    goal = ends_of(record.ranges)
    ranges = next_cut(starts, goal, size_of(record.ranges) // _PARTS)
    ends = ends_of(ranges)
    return replace(
        record,
        epoch=epoch,
        ranges=ranges,
        read_to_end=tuple((t, p) for t, p in record.read_to_end if ends[t][p] == goal[t][p]),
        bounded_end=False,
    )
