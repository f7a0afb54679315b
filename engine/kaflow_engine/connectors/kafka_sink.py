"""Delivers the rows of one task to Kafka. Runs in Spark's Python workers.

Exactly once: rows and markers are one transaction; what a marker covers is not written again, and a
producer of an earlier run cannot commit. At least once: rows are written and acknowledged, so a
batch that is replayed is written twice.
"""

# pyarrow is untyped
# pyright: reportMissingTypeStubs=false, reportUnknownMemberType=false
# pyright: reportUnknownParameterType=false, reportUnknownVariableType=false
# pyright: reportUnknownArgumentType=false, reportAttributeAccessIssue=false

import time
from collections import deque
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from itertools import islice, repeat
from threading import Lock
from typing import Any
from zlib import crc32

import pyarrow as pa
import pyarrow.compute as pc
from confluent_kafka import KafkaError, KafkaException, Producer

from kaflow_engine.connectors.kafka_control_records import Marker, to_bytes
from kaflow_engine.connectors.kafka_errors import error_of
from kaflow_engine.connectors.kafka_producer import (
    TIMEOUT,
    SinkSettings,
    Writer,
    close_producers,
    discard,
    milliseconds,
    writer_of,
)
from kaflow_engine.connectors.kafka_transactions import abort, control_topic
from kaflow_engine.errors import SinkError, StateError

__all__ = ["DeliveryResult", "SinkSettings", "close_producers", "dead_letter_partition", "deliver"]

CHUNK_ROWS = 20_000
QUEUED_BYTES = 64 * 2**20
DEAD_LETTER = 1
_ONE_AT_A_TIME = Lock()


@dataclass(frozen=True, slots=True, kw_only=True)
class DeliveryResult:
    """What one delivery did."""

    rows: int
    dead_letters: int
    skipped: tuple[int, ...]
    """Delivery partitions whose rows had been delivered before."""
    phases: Mapping[str, float]
    """Milliseconds per phase: open, produce, flush, commit."""


def _survive(name: str) -> None:
    """Do nothing at a crash point."""


def deliver(
    sink: SinkSettings,
    batch: int,
    rows: pa.Table,
    crash_point: Callable[[str], None] = _survive,
    mark: str = "",
) -> DeliveryResult:
    """Write the rows of one task of one batch, with a marker per delivery partition.

    Args:
        sink: Where to, for which run.
        batch: The batch number, which the markers get.
        rows: Schema OUTPUT, in the order in which rows must leave per key.
        crash_point: Called with before_slot, slot_claimed, before_transaction, transaction_begun,
            rows_produced, marker_produced, before_commit, committed.
        mark: `batch_mark` of the batch, which the markers get.

    Raises:
        SinkError: A row was refused, a newer run has started, or the broker fails; nothing of the
            task is visible to readers of committed records, except at least once.
    """
    todo, skipped = _undelivered(sink, batch, rows)
    if todo.num_rows == 0:
        return DeliveryResult(rows=0, dead_letters=0, skipped=skipped, phases={})
    with _ONE_AT_A_TIME:
        start = time.perf_counter()
        writer = writer_of(sink, crash_point)
        phases = {"open": milliseconds(start)}
        try:
            if sink.exactly_once:
                phases |= _transaction(sink, writer, batch, todo, crash_point, mark)
            else:
                phases |= _plain(writer, todo, crash_point)
        except (KafkaException, SystemError) as failure:
            discard(sink)
            error = _refused(writer, error_of(failure), todo)
            if sink.exactly_once:
                abort(writer.client, TIMEOUT)
            raise error from failure
        except BaseException:
            # the next run fences the slot, which aborts what is open
            discard(sink)
            raise
    dead = int(pc.sum(pc.equal(todo["kind"], DEAD_LETTER)).as_py())
    return DeliveryResult(
        rows=todo.num_rows - dead, dead_letters=dead, skipped=skipped, phases=phases
    )


def dead_letter_partition(topic: str, partition: int, count: int) -> int:
    """Return where dead letters of a source partition go, among `count` partitions.

    >>> dead_letter_partition("orders", 3, 1)
    0
    """
    return (crc32(topic.encode()) + partition) % count


def _undelivered(
    sink: SinkSettings, batch: int, rows: pa.Table
) -> tuple[pa.Table, tuple[int, ...]]:
    covered = [slot for slot, (last, _) in sink.delivered.items() if last >= batch]
    if not covered or not sink.exactly_once:
        return rows, ()
    if sink.same_rows:
        _require_same(sink, batch, rows)
    done = pc.is_in(rows["slot"], value_set=pa.array(covered, pa.int32()))
    skipped = sorted(pc.unique(rows["slot"].filter(done)).to_pylist())
    return rows.filter(pc.invert(done)), tuple(skipped)


def _require_same(sink: SinkSettings, batch: int, rows: pa.Table) -> None:
    for slot, count in _counts(rows).items():
        last, before = sink.delivered.get(slot, (0, 0))
        if last == batch and count != before:
            raise StateError(
                f"batch {batch} of pipeline '{sink.pipeline_id}' has delivered {before:,} rows of "
                f"partition {slot}, and has {count:,} now that it runs again: its inputs, or what "
                "it looks up, are not what they were",
                hint="give the pipeline a new `id:`, which starts anew and writes rows it has "
                "written before",
            )


def _counts(rows: pa.Table) -> dict[int, int]:
    """Return the rows of each delivery partition."""
    counted = pc.value_counts(rows["slot"])
    return dict(
        zip(counted.field("values").to_pylist(), counted.field("counts").to_pylist(), strict=True)
    )


def _transaction(
    sink: SinkSettings,
    writer: Writer,
    batch: int,
    rows: pa.Table,
    crash_point: Callable[[str], None],
    mark: str,
) -> dict[str, float]:
    producer = writer.client.api
    start = time.perf_counter()
    crash_point("before_transaction")
    producer.begin_transaction()
    crash_point("transaction_begun")
    _produce(producer, rows)
    crash_point("rows_produced")
    topic = control_topic(sink.pipeline_id)
    for slot, count in sorted(_counts(rows).items()):
        marker = Marker(
            state=sink.state_id,
            generation=sink.generation,
            sink=sink.sink,
            partition=slot,
            batch=batch,
            epoch=sink.epoch,
            rows=count,
            mark=mark,
        )
        key, value = to_bytes(marker)
        producer.produce(topic, value, key, 0)
    crash_point("marker_produced")
    produced = time.perf_counter()
    _flush(writer, sink.transaction_timeout)
    flushed = time.perf_counter()
    crash_point("before_commit")
    producer.commit_transaction(TIMEOUT / 1000)
    committed = milliseconds(flushed)
    crash_point("committed")
    return {
        "produce": (produced - start) * 1000,
        "flush": (flushed - produced) * 1000,
        "commit": committed,
    }


def _plain(writer: Writer, rows: pa.Table, crash_point: Callable[[str], None]) -> dict[str, float]:
    start = time.perf_counter()
    _produce(writer.client.api, rows)
    crash_point("rows_produced")
    produced = time.perf_counter()
    _flush(writer, TIMEOUT)
    crash_point("committed")
    return {"produce": (produced - start) * 1000, "flush": milliseconds(produced)}


def _produce(producer: Producer, rows: pa.Table) -> None:
    per_row = max(1, rows.nbytes // rows.num_rows)
    chunk = max(1, min(CHUNK_ROWS, QUEUED_BYTES // per_row))
    # produce_batch takes neither timestamps nor headers; map keeps the loop out of Python
    for start in range(0, rows.num_rows, chunk):
        while len(producer) * per_row > QUEUED_BYTES:
            producer.poll(0.01)
        part = rows.slice(start, chunk)
        calls = map(
            producer.produce,
            _few(part["topic"]),
            _objects(part["value"]),
            _objects(part["key"]),
            _few(pc.fill_null(part["partition"], -1)),
            repeat(None),
            repeat(None),
            # the client takes 0 for "now"
            _objects(pc.max_element_wise(part["timestamp"], 1)),
            _headers(part["headers"]),
        )
        deque(calls, maxlen=0)


def _objects(column: pa.ChunkedArray | pa.Array) -> list[Any]:
    return column.to_numpy(zero_copy_only=False).tolist()


def _few(column: pa.ChunkedArray) -> Iterable[Any]:
    """Return the values of a column that mostly has one value over and over."""
    distinct = pc.unique(column)
    return repeat(distinct[0].as_py()) if len(distinct) == 1 else _objects(column)


def _headers(column: pa.ChunkedArray) -> Iterable[list[tuple[str, bytes | None]] | None]:
    headers = column.combine_chunks()
    lengths = pc.fill_null(pc.list_value_length(headers), 0).to_pylist()
    if not any(lengths):
        return repeat(None)
    # lists of structs are slow to convert one by one, so all pairs are converted at once
    flat = headers.flatten()
    pairs = iter(zip(_objects(flat.field("key")), _objects(flat.field("value")), strict=True))
    return (list(islice(pairs, length)) if length else None for length in lengths)


def _flush(writer: Writer, timeout: int) -> None:
    left = writer.client.api.flush(timeout / 1000)
    if writer.refusals.found:
        raise KafkaException(writer.refusals.found[0].error)
    if left:
        raise KafkaException(KafkaError(KafkaError.REQUEST_TIMED_OUT))


def _refused(writer: Writer, error: KafkaError, rows: pa.Table) -> SinkError:
    refusal = writer.refusals.found[0] if writer.refusals.found else None
    if refusal is not None:
        doing = f"writing {refusal.size:,} bytes to topic '{refusal.topic}'"
        return writer.client.trouble(refusal.error, doing, TIMEOUT).as_sink()
    topics = ", ".join(f"'{topic}'" for topic in pc.unique(rows["topic"]).to_pylist())
    doing = f"writing to {topics}"
    if error.name() == "MSG_SIZE_TOO_LARGE":
        sizes = pc.add(
            pc.fill_null(pc.binary_length(rows["value"]), 0),
            pc.fill_null(pc.binary_length(rows["key"]), 0),
        )
        largest = pc.max(sizes).as_py()
        topic = rows["topic"][pc.index(sizes, largest).as_py()].as_py()
        doing = f"writing {largest:,} bytes to topic '{topic}'"
    return writer.client.trouble(error, doing, TIMEOUT).as_sink()
