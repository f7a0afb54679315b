"""What a start must know of the runs before it, and what it refuses."""

from collections.abc import Mapping

from kaflow_engine.connectors.kafka_control import RunStart
from kaflow_engine.errors import StateError
from kaflow_engine.runtime.start.bring_back import RESTORED
from kaflow_engine.state.log import BatchLog


def doubtful(log: BatchLog) -> int | None:
    """Return a batch that may have been delivered although the log does not have it as done."""
    begun = log.open_batch()
    return log.next_number() if begun or log.store.exists(RESTORED) else None


def last_epoch(log: BatchLog) -> int:
    """Return the greatest epoch that the log knows."""
    last, begun = log.last_commit(), log.open_batch()
    return max(last.epoch if last else 0, begun.epoch if begun else 0)


def check_delivered(
    log: BatchLog, start: RunStart, kept: Mapping[int, object], pipeline: str
) -> None:
    """Refuse a log that lacks batches which were delivered: it was taken back by hand."""
    begun = log.open_batch()
    known = begun.number if begun else log.next_number() - 1
    known = max(known, *kept, 0)
    delivered = max(start.delivered.values(), default=0)
    if delivered > known:
        raise StateError(
            f"batch {delivered} of pipeline '{pipeline}' was delivered, but its log ends at "
            f"batch {known}",
            hint="restore the newer state directory, or give the pipeline a new `id:`, which "
            "starts anew and writes rows it has written before",
        )
