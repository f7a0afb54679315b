"""Batch backup: batch records kept in the pipeline's topic until a checkpoint covers them.

A machine that has restored a checkpoint runs them again with the same cuts: the state becomes what
it was, and what was delivered is not delivered again.
"""

from collections.abc import Callable, Mapping
from typing import Any

from kaflow_engine.connectors.run_log import RunLog
from kaflow_engine.errors import StateError
from kaflow_engine.operators.rows.reports import BatchReport
from kaflow_engine.state.hints import NEW_ID_REPEATS
from kaflow_engine.state.log.batch_log import BatchLog, BatchRecord
from kaflow_engine.state.log.by_chain import from_stored, known, to_stored

_WAYS_OUT = f"{NEW_ID_REPEATS}, or set `on_data_loss: continue` for topics that forget records"


class KeptBatches:
    """Writes them before they run, checks them when they run again, and lets go of them."""

    def __init__(
        self,
        control: RunLog,
        found: Mapping[int, Mapping[str, Any]],
        covered: Callable[[], int],
    ) -> None:
        self._control = control
        self._before = {number: kept["read_before"] for number, kept in found.items()}
        self._expected = {number - 1: kept["read_before"] for number, kept in found.items()}
        self._covered = covered
        self._read: dict[int, int] = {}  # of the last batch
        self._oldest = min(found, default=None)

    def put(self, record: BatchRecord) -> None:
        """Keep a batch that is about to run.

        Raises:
            SinkError: A newer run has started, or the broker fails.
        """
        before = self._read.get(record.number - 1, self._before.get(record.number))
        self._control.put_batch(record.number, to_kept(record, before))
        self._oldest = record.number if self._oldest is None else self._oldest

    def ran(self, number: int, report: BatchReport) -> None:
        """Take note of what a batch has read; it is not committed yet.

        Raises:
            StateError: It read something else the first time, so its state cannot be made again.
        """
        read = sum(part.count for part in report.partitions.values())
        expected = self._expected.pop(number, None)
        if expected is not None and expected != read:
            raise StateError(
                f"batch {number} read {expected:,} records when it ran first, and {read:,} now: "
                "its topics were compacted, or have lost records",
                hint=_WAYS_OUT,
            )
        self._read = {number: read}

    def excuse(self, number: int) -> None:
        """Expect nothing of a batch whose records are known to be lost."""
        self._expected.pop(number, None)

    def forget(self) -> None:
        """Remove what checkpoints cover.

        Raises:
            SinkError: As in `put`.
        """
        covered = self._covered()
        if self._oldest is not None and self._oldest <= covered:
            self._control.drop_batches(range(self._oldest, covered + 1))
            self._oldest = covered + 1


def batches_left(
    log: BatchLog, kept: Mapping[int, Mapping[str, Any]], epoch: int, pipeline: str
) -> list[BatchRecord]:
    """Return the batches that were begun and are not in the log as done, in their order.

    Args:
        log: The batch log, maybe a restored one.
        kept: What the topic keeps, by batch.
        epoch: Of this run.
        pipeline: Its name.

    Raises:
        StateError: Some are missing between the log and the topic.
    """
    begun, first, last = log.open_batch(), log.next_number(), max(kept, default=0)
    if last < first:
        return [] if begun is None else [begun]
    lacking = next((number for number in range(first, last + 1) if number not in kept), None)
    if lacking is not None:
        raise StateError(
            f"the state of pipeline '{pipeline}' ends at batch {first - 1}, and batch {lacking} "
            "is no longer kept, because a checkpoint covers it",
            hint="let this machine reach the bucket with the checkpoints",
        )
    left = [_record(number, kept[number], epoch) for number in range(first, last + 1)]
    return left if begun is None else [begun, *left[1:]]


def to_kept(record: BatchRecord, read_before: int | None) -> dict[str, Any]:
    """Return what is kept of a batch, and how many records the one before it has read."""
    return {
        "plan": record.plan,
        "batch_time": record.batch_time,
        "watermark": to_stored(record.watermark),
        "ranges": {t: {str(p): list(r) for p, r in ps.items()} for t, ps in record.ranges.items()},
        "read_to_end": [list(place) for place in record.read_to_end],
        "bounded_end": record.bounded_end,
        "topic_ids": record.topic_ids,
        **({"found": record.found} if record.found else {}),
        "read_before": read_before,
    }


def _record(number: int, kept: Mapping[str, Any], epoch: int) -> BatchRecord:
    ranges = {
        topic: {int(p): (first, end) for p, (first, end) in parts.items()}
        for topic, parts in kept["ranges"].items()
    }
    return BatchRecord(
        number=number,
        epoch=epoch,
        plan=kept["plan"],
        batch_time=kept["batch_time"],
        watermark=known(from_stored(kept["watermark"])),
        ranges=ranges,
        read_to_end=tuple((topic, p) for topic, p in kept["read_to_end"]),
        bounded_end=kept["bounded_end"],
        topic_ids=kept.get("topic_ids", {}),
        found=kept.get("found", {}),
    )
