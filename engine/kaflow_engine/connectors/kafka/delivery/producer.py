"""The producers a worker process keeps: one per pipeline and sink, bound to a run epoch.

Workers do not stick to partitions and producers are slow to open, so they outlive a task. A task of
another epoch opens its own.
"""

import os
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from uuid import uuid4

from confluent_kafka import KafkaException

from kaflow_engine.connectors.kafka.client import Client, KafkaSettings
from kaflow_engine.connectors.kafka.delivery.row_producer import (
    Refusals,
    RowProducer,
    open_row_producer,
)
from kaflow_engine.connectors.kafka.run_log.control_records import Slot, to_bytes
from kaflow_engine.connectors.kafka.run_log.transactions import (
    control_topic,
    init_transactions,
    newest_epoch,
    transactional,
    transactional_id,
    write_acknowledged,
)
from kaflow_engine.connectors.run_log import Delivered
from kaflow_engine.errors import TakenOver

TIMEOUT = 30_000

_NEEDED: dict[str, object] = {
    "partitioner": "murmur2_random",
    "queue.buffering.max.messages": 0,
    "queue.buffering.max.kbytes": 2_147_483_647,
    "delivery.report.only.error": True,
}
"""murmur2_random is the Java producer's partitioner; how much waits in the queue we count ourselves
(`kafka_sink`), because a full queue would raise in the middle of a batch."""

_TUNED: dict[str, object] = {
    "compression.type": "lz4",
    "linger.ms": 20,
    "batch.num.messages": 100_000,
    "batch.size": 1_000_000,
    "message.max.bytes": 256 * 2**20,  # how large a record may be is for the topic to say
    "topic.metadata.propagation.max.ms": 5_000,
}
"""What the author's own properties go over."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SinkSettings:
    """What a task must know to deliver; picklable, the same for all tasks of a run."""

    kafka: KafkaSettings
    pipeline_id: str
    state_id: str
    generation: int
    sink: str
    epoch: int
    epoch_offset: int = 0
    """`RunStart.epoch_offset`: from where a writer looks for a newer epoch."""
    exactly_once: bool = True
    delivered: Mapping[int, Delivered] = field(default_factory=dict[int, Delivered])
    """By delivery partition (`RunStart.delivered_to`)."""
    same_rows: bool = True
    """Whether a batch that runs again must have the rows it had."""
    tries: int = 0
    """How many earlier runs have begun the batch, and not finished it."""

    def has_begun(self, batch: int) -> bool:
        """Tell whether rows of a batch have been delivered by earlier runs."""
        return any(found.batch == batch for found in self.delivered.values())


@dataclass(frozen=True, slots=True)
class Writer:
    """An open producer of one epoch."""

    client: Client[RowProducer]
    refusals: Refusals
    epoch: int
    exactly_once: bool
    settings: KafkaSettings
    pid: int


_WRITERS: dict[tuple[str, str, str], Writer] = {}
_LEFT: list[Writer] = []
"""Those that were left in a transaction. librdkafka 2.16 may end the process where such a client is
destroyed before its partitions are in the transaction (an assertion in rdkafka_txnmgr.c)."""


def writer_of(sink: SinkSettings, crash_point: Callable[[str], None]) -> Writer:
    """Return this process's writer for the sink, opening it if there is none of this epoch.

    Raises:
        TakenOver: A newer run has started.
        SinkError: No broker answers, or it refuses.
    """
    name = _name(sink)
    found = _WRITERS.get(name)
    if found is not None:
        same = (found.epoch, found.exactly_once, found.settings, found.pid)
        if same == (sink.epoch, sink.exactly_once, sink.kafka, os.getpid()):
            return found
        discard(sink)
    writer = _open_exactly_once(sink, crash_point) if sink.exactly_once else _open_plain(sink)
    _WRITERS[name] = writer
    return writer


def discard(sink: SinkSettings) -> None:
    """Forget this process's writer for the sink."""
    _WRITERS.pop(_name(sink), None)


def leave(sink: SinkSettings) -> None:
    """Forget this process's writer for the sink, whose transaction is open; the next run fences it,
    which aborts that."""
    writer = _WRITERS.pop(_name(sink), None)
    if writer is not None and writer.exactly_once:
        _LEFT.append(writer)


def _name(sink: SinkSettings) -> tuple[str, str, str]:
    return sink.pipeline_id, sink.sink, sink.kafka.cluster


def is_newest(sink: SinkSettings) -> bool:
    """Tell whether no newer run has started; a fenced producer then had too little time.

    Raises:
        SourceError: The pipeline's own topic cannot be read.
    """
    return _newest_epoch(sink) == sink.epoch


def close_producers() -> None:
    """Close every producer this process keeps."""
    _WRITERS.clear()


def _open_exactly_once(sink: SinkSettings, crash_point: Callable[[str], None]) -> Writer:
    topic = control_topic(sink.pipeline_id)
    slot = transactional_id(sink.pipeline_id, f"{sink.sink}.{uuid4().hex}")
    refusals = Refusals()
    crash_point("before_slot")
    # registered, then able to write, then looking for a newer epoch: see ControlTopic.start_run
    write_acknowledged(sink.kafka, topic, [to_bytes(Slot(slot, sink.epoch))], TIMEOUT)
    crash_point("slot_claimed")
    more = transactional(slot, sink.kafka.transaction_timeout)
    client = open_row_producer(sink.kafka, {**_config(sink.kafka), **more}, refusals)
    init_transactions(client, slot, TIMEOUT)
    _require_newest(sink)
    return Writer(client, refusals, sink.epoch, True, sink.kafka, os.getpid())


def _open_plain(sink: SinkSettings) -> Writer:
    refusals = Refusals()
    config = {**_config(sink.kafka), "enable.idempotence": True}
    client = open_row_producer(sink.kafka, config, refusals)
    try:
        # without a connection, the producer id would be asked for again only after half a second
        client.api.list_topics(timeout=TIMEOUT / 1000)
    except KafkaException as failure:
        raise client.trouble(failure, "opening a producer", TIMEOUT).as_sink() from failure
    _require_newest(sink)
    return Writer(client, refusals, sink.epoch, False, sink.kafka, os.getpid())


def _config(settings: KafkaSettings) -> dict[str, object]:
    written = dict(settings.properties)
    tuned = {name: value for name, value in _TUNED.items() if name not in written}
    return {**tuned, **_NEEDED}


def _require_newest(sink: SinkSettings) -> None:
    newest = _newest_epoch(sink)
    if newest != sink.epoch:
        raise TakenOver(
            f"run {sink.epoch} of pipeline '{sink.pipeline_id}' may not write: run {newest} has "
            "taken over",
            hint="a pipeline has one run at a time; stop this one",
        )


def _newest_epoch(sink: SinkSettings) -> int:
    topic = control_topic(sink.pipeline_id)
    return newest_epoch(sink.kafka, topic, sink.epoch_offset, TIMEOUT)


def milliseconds(since: float) -> float:
    """Return the milliseconds since a `time.perf_counter()`."""
    return (time.perf_counter() - since) * 1000
