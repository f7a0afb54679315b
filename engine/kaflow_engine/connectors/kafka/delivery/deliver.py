"""Delivers the rows of one task to Kafka. Runs in Spark's Python workers.

Exactly once: rows and their markers are one transaction, what a marker covers is not written again,
and a producer of an earlier run cannot commit. At least once: rows are written and acknowledged, so
a batch that is replayed is written twice.
"""

import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from threading import Lock
from typing import Any
from zlib import crc32

import pyarrow as pa
import pyarrow.compute as pc
from confluent_kafka import KafkaError, KafkaException

from kaflow_engine.connectors.kafka.delivery.pace import pace_of
from kaflow_engine.connectors.kafka.delivery.producer import (
    TIMEOUT,
    SinkSettings,
    Writer,
    close_producers,
    discard,
    is_newest,
    leave,
    milliseconds,
    writer_of,
)
from kaflow_engine.connectors.kafka.delivery.queue import Outgoing, TooSlow, sizes_of
from kaflow_engine.connectors.kafka.delivery.row_producer import Refusal
from kaflow_engine.connectors.kafka.delivery.undelivered import Todo, undelivered
from kaflow_engine.connectors.kafka.errors import FENCED, MISSING, error_of
from kaflow_engine.connectors.kafka.run_log.control_records import Marker, Pair, to_bytes
from kaflow_engine.connectors.kafka.run_log.transactions import abort, control_topic, out_of_time
from kaflow_engine.errors import KaflowError
from kaflow_engine.flow.records import DEAD_LETTER, HEADERS
from kaflow_engine.model.names import is_topic_name

__all__ = ["DeliveryResult", "SinkSettings", "close_producers", "dead_letter_partition", "deliver"]

_ONE_AT_A_TIME = Lock()

CrashPoint = Callable[[str], None]


@dataclass(frozen=True, slots=True, kw_only=True)
class DeliveryResult:
    """What one delivery did."""

    by_topic: Mapping[str, int]
    """Rows, dead letters aside."""
    dead_letters: int
    skipped: tuple[int, ...]
    """Delivery partitions whose rows had been delivered before, all or the first of them."""
    phases: Mapping[str, float]
    """Milliseconds per phase: open, produce, flush, commit."""

    @property
    def rows(self) -> int:
        """All rows, dead letters aside."""
        return sum(self.by_topic.values())


def _survive(name: str) -> None:
    """Do nothing at a crash point."""


def deliver(
    sink: SinkSettings,
    batch: int,
    rows: pa.Table,
    crash_point: CrashPoint = _survive,
    mark: str = "",
    alone: bool = False,
) -> DeliveryResult:
    """Write the rows of one task of one batch, with a marker per delivery partition.

    What takes long is written in several transactions, so that brokers do not abort it; the markers
    of each say how far it is.

    Args:
        sink: Where to, for which run.
        batch: The batch number, which the markers get.
        rows: Schema OUTPUT, in the order in which rows must leave per key.
        crash_point: Called with before_slot, slot_claimed, before_transaction, transaction_begun,
            rows_produced, marker_produced, before_commit, piece_committed, committed.
        mark: `batch_mark` of the batch, which the markers get.
        alone: Whether these are all rows of the batch.

    Raises:
        SinkError: A row was refused, a newer run has started, or the broker fails; of what readers
            of committed records see the markers know, except at least once.
        OutOfTime: A transaction took longer than the brokers let it.
        StateError: The batch runs again, and does not have the rows that it has delivered.
    """
    todo = undelivered(sink, batch, rows, alone) if sink.exactly_once else Todo(rows)
    if todo.rows.num_rows == 0:
        return DeliveryResult(by_topic={}, dead_letters=0, skipped=todo.skipped, phases={})
    with _ONE_AT_A_TIME:
        start = time.perf_counter()
        writer = writer_of(sink, crash_point)
        phases = {"open": milliseconds(start)}
        try:
            if sink.exactly_once:
                phases |= _transactions(sink, writer, batch, todo, crash_point, mark)
            else:
                phases |= _plain(writer, todo.rows, crash_point)
        except (KafkaException, SystemError, TooSlow) as failure:
            discard(sink)
            error = _failed(sink, writer, failure, todo.rows)
            if sink.exactly_once:
                abort(writer.client, TIMEOUT)
            raise error from failure
        except BaseException:
            leave(sink)
            raise
    dead = pc.equal(todo.rows["kind"], DEAD_LETTER)
    topics = pc.value_counts(todo.rows["topic"].filter(pc.invert(dead))).to_pylist()
    return DeliveryResult(
        by_topic={each["values"]: each["counts"] for each in topics},
        dead_letters=int(pc.sum(dead).as_py()),
        skipped=todo.skipped,
        phases=phases,
    )


def dead_letter_partition(topic: str, partition: int, count: int) -> int:
    """Return where dead letters of a source partition go, among `count` partitions.

    >>> dead_letter_partition("orders", 3, 1)
    0
    """
    return (crc32(topic.encode()) + partition) % count


def _transactions(
    sink: SinkSettings, writer: Writer, batch: int, todo: Todo, pass_point: CrashPoint, mark: str
) -> dict[str, float]:
    """Write rows and markers; what takes long in several transactions, one after the other."""
    producer, topic = writer.client.api, control_topic(sink.pipeline_id)
    outgoing = Outgoing(writer, todo.rows, pace_of(sink.kafka.transaction_timeout, sink.tries))
    spent = {"produce": 0.0, "flush": 0.0, "commit": 0.0}
    while outgoing.left:
        start = time.perf_counter()
        pass_point("before_transaction")
        producer.begin_transaction()
        pass_point("transaction_begun")
        piece = outgoing.fill()
        pass_point("rows_produced")
        markers: list[Pair] = []
        for slot, rows, digest in todo.delivered(piece):
            marker = Marker(
                state=sink.state_id,
                generation=sink.generation,
                sink=sink.sink,
                partition=slot,
                batch=batch,
                epoch=sink.epoch,
                rows=rows,
                mark=mark,
                digest=digest,
            )
            markers.append(to_bytes(marker))
        producer.write(_of_control_topic(topic, markers))
        pass_point("marker_produced")
        produced = time.perf_counter()
        outgoing.flush()
        flushed = time.perf_counter()
        pass_point("before_commit")
        producer.commit_transaction(TIMEOUT / 1000)
        spent["commit"] += milliseconds(flushed)
        pass_point("piece_committed" if outgoing.left else "committed")
        spent["produce"] += (produced - start) * 1000
        spent["flush"] += (flushed - produced) * 1000
    return spent


def _of_control_topic(topic: str, pairs: Sequence[Pair]) -> pa.Table:
    """Return records for the pipeline's own topic as rows."""
    keys, values = zip(*pairs, strict=True)
    count = len(pairs)
    columns: dict[str, Any] = {
        "topic": pa.repeat(topic, count),
        "key": pa.array(keys, pa.binary()),
        "value": pa.array(values, pa.binary()),
        "timestamp": pa.repeat(time.time_ns() // 1_000_000, count),
        "headers": pa.nulls(count, HEADERS),
        "partition": pa.repeat(pa.scalar(0, pa.int32()), count),
    }
    return pa.table(columns)


def _plain(writer: Writer, rows: pa.Table, pass_point: CrashPoint) -> dict[str, float]:
    start = time.perf_counter()
    outgoing = Outgoing(writer, rows, pace_of(None))
    outgoing.fill()
    pass_point("rows_produced")
    produced = time.perf_counter()
    outgoing.flush()
    pass_point("committed")
    return {"produce": (produced - start) * 1000, "flush": milliseconds(produced)}


def _failed(
    sink: SinkSettings, writer: Writer, failure: BaseException, rows: pa.Table
) -> KaflowError:
    """Say why rows could not be written."""
    topics = ", ".join(f"'{topic}'" for topic in pc.unique(rows["topic"]).to_pylist())
    doing = f"writing to {topics}"
    error = error_of(failure)
    if isinstance(failure, TooSlow):
        return out_of_time(sink.kafka, doing)
    try:
        if error.name() in FENCED and is_newest(sink):
            return out_of_time(sink.kafka, doing)
    except KaflowError as away:
        return away
    with suppress(KafkaException, SystemError):  # one that is fatal is known, and raised again
        writer.client.api.poll(0)  # a report that waits says which row it was
    refusal = writer.refusals.found[0] if writer.refusals.found else _suspect(error, rows)
    if refusal is not None:
        error = refusal.error
        doing = f"writing {refusal.size:,} bytes to topic '{refusal.topic}'"
        if error.name() in MISSING and not is_topic_name(refusal.topic):
            # which of the two is said depends on who is asked first
            error = KafkaError(KafkaError.TOPIC_EXCEPTION)
    return writer.client.trouble(error, doing, TIMEOUT).as_sink()


def _suspect(error: KafkaError, rows: pa.Table) -> Refusal | None:
    """Say which row an error is about that came without a report, where that is plain."""
    sizes = sizes_of(rows)
    if error.name() == "MSG_SIZE_TOO_LARGE":
        at = int(sizes.argmax())
    elif error.name() in MISSING and len(pc.unique(rows["topic"])) == 1:
        at = 0
    else:
        return None
    return Refusal(error, rows["topic"][at].as_py(), int(sizes[at]))
