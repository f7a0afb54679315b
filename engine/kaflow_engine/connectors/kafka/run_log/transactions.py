"""Transactional producers, and reading the pipeline's own topic: shared by driver and workers."""

import time
from collections.abc import Callable, Sequence
from typing import Protocol

from confluent_kafka import (
    TIMESTAMP_LOG_APPEND_TIME,
    Consumer,
    KafkaError,
    KafkaException,
    Message,
    Producer,
    TopicPartition,
)

from kaflow_engine.connectors.kafka.client import (
    Client,
    KafkaSettings,
    open_consumer,
    open_producer,
)
from kaflow_engine.connectors.kafka.errors import FENCED, MISSING, MOVING, OutOfTime, error_of
from kaflow_engine.connectors.kafka.read import collect
from kaflow_engine.connectors.kafka.run_log.control_records import ControlView, Pair
from kaflow_engine.errors import StateError

_LOOK_AGAIN_S = 0.05


class TransactionalProducer(Protocol):
    """A client that writes in transactions; its errors are KafkaExceptions."""

    def list_topics(self, *, timeout: float) -> object:
        """Return when a broker has answered."""
        ...

    def init_transactions(self, timeout: float, /) -> None:
        """Fence whoever had the transactional id before."""
        ...

    def begin_transaction(self) -> None:
        """Begin a transaction."""
        ...

    def commit_transaction(self, timeout: float, /) -> None:
        """Commit it, when all of it is acknowledged."""
        ...

    def abort_transaction(self, timeout: float, /) -> None:
        """Abort it."""
        ...

    def purge(self) -> None:
        """Throw away what is not acknowledged."""
        ...

    def poll(self, timeout: float, /) -> object:
        """Take reports."""
        ...


def control_topic(pipeline_id: str) -> str:
    """Return the name of the pipeline's own topic."""
    return f"__kaflow.{pipeline_id}"


def transactional_id(pipeline_id: str, name: str) -> str:
    """Return a transactional id; all those of a pipeline share a prefix, for access rules."""
    return f"kaflow.{pipeline_id}.{name}"


def open_transactional(
    settings: KafkaSettings, name: str, transaction_timeout: int, timeout: int, **more: object
) -> Client[Producer]:
    """Return a producer that may begin transactions; whoever had its id before is fenced.

    What the predecessor left open is aborted, and what it was committing is committed, when this
    returns.

    Args:
        settings: How to reach the brokers.
        name: The transactional id.
        transaction_timeout: Milliseconds after which the broker aborts an abandoned transaction.
        timeout: Milliseconds to wait here.
        more: Further librdkafka settings.

    Raises:
        SinkError: No broker answers, or it refuses.
    """
    client = open_producer(settings, **transactional(name, transaction_timeout), **more)
    init_transactions(client, name, timeout)
    return client


def transactional(name: str, transaction_timeout: int) -> dict[str, object]:
    """Return the settings of a producer of transactions; see `open_transactional`."""
    return {"transactional.id": name, "transaction.timeout.ms": transaction_timeout}


def init_transactions(client: Client[TransactionalProducer], name: str, timeout: int) -> None:
    """Fence whoever had the transactional id of a producer before; see `open_transactional`.

    Raises:
        SinkError: No broker answers, or it refuses.
    """
    doing = f"opening transactions as '{name}'"
    try:
        # without a connection, init_transactions tries again only after half a second
        client.api.list_topics(timeout=timeout / 1000)
        client.api.init_transactions(timeout / 1000)
    except KafkaException as failure:
        raise client.trouble(failure, doing, timeout).as_sink() from failure


def write_acknowledged(
    settings: KafkaSettings, topic: str, pairs: Sequence[Pair], timeout: int
) -> int | None:
    """Write records outside of any transaction, and return once all replicas in sync have them.

    Returns:
        When the broker took the last one, by its clock; None: the topic keeps that of writers.

    Raises:
        SinkError: No broker answers, or it refuses.
    """
    receipts = Receipts()
    # a repeated record does no harm here, and idempotence would first ask for a producer id
    client = open_producer(settings, **{"acks": "all", "linger.ms": 0})
    for key, value in pairs:
        client.api.produce(topic, value, key, 0, on_delivery=receipts)
    left = client.api.flush(timeout / 1000)
    error = KafkaError(KafkaError.REQUEST_TIMED_OUT) if left else receipts.error
    if error is not None:
        raise client.trouble(error, f"writing topic '{topic}'", timeout).as_sink()
    return receipts.taken


class Receipts:
    """Delivery reports: the first error, and the offset of the last record."""

    def __init__(self) -> None:
        self.error: KafkaError | None = None
        self.offset = -1
        self.taken: int | None = None
        """Epoch milliseconds by the broker's clock, if the topic keeps that."""

    def __call__(self, error: KafkaError | None, message: Message) -> None:
        """Take one report."""
        if error is not None:
            self.error = self.error or error
        else:
            self.offset = max(self.offset, message.offset() or 0)
            kind, at = message.timestamp()
            self.taken = at if kind == TIMESTAMP_LOG_APPEND_TIME else None


class ControlReader:
    """Reads the pipeline's own topic on, each time up to its end at that moment."""

    def __init__(
        self, settings: KafkaSettings, topic: str, timeout: int, committed: bool, start: int = 0
    ) -> None:
        level = "read_committed" if committed else "read_uncommitted"
        self._client: Client[Consumer] = open_consumer(settings, **{"isolation.level": level})
        self._topic = topic
        self._timeout = timeout
        self._next = start

    def read_on(self, end: int | None = None) -> list[Pair]:
        """Return further records, up to the end that this reader may see.

        Args:
            end: The uncommitted end, for a reader of committed records: it waits for open
                transactions instead of ending in front of them.

        Raises:
            SourceError: The topic cannot be read.
            StateError: A transaction that no one may hold stays open.
        """
        if end is None:
            end = self.end()
        if self._next >= end:
            return []
        starts, ends = {0: self._next}, {0: end}
        try:
            messages = collect(
                self._client, self._topic, starts, ends, self._timeout, close=False, exact=True
            )
        except TimeoutError as error:
            raise StateError(
                f"topic '{self._topic}' cannot be read to its end: a transaction stays open",
                hint="a producer outside of this pipeline writes to the topic; stop it, or wait "
                "until the brokers abort its transaction",
            ) from error
        self._next = end
        return [(m.key() or b"", m.value()) for m in messages]

    def end(self) -> int:
        """Return the offset behind the last record that this reader may see."""
        place = TopicPartition(self._topic, 0)
        doing = f"asking for the end of topic '{self._topic}'"
        deadline = time.monotonic() + self._timeout / 1000
        while True:
            try:
                found = self._client.api.get_watermark_offsets(place, timeout=self._timeout / 1000)
                return found[1]
            except KafkaException as failure:
                # the topic is there, but not every broker may have heard of it
                passing = error_of(failure).name() in MISSING | MOVING
                if not passing or time.monotonic() > deadline:
                    trouble = self._client.trouble(failure, doing, self._timeout)
                    raise trouble.as_source() from failure
            time.sleep(_LOOK_AGAIN_S)

    def close(self) -> None:
        """Close the consumer."""
        self._client.api.close()


def newest_epoch(settings: KafkaSettings, topic: str, start: int, timeout: int) -> int:
    """Return the newest run epoch from an offset of the pipeline's own topic on, committed or not.

    Raises:
        SourceError: The topic cannot be read.
    """
    reader = ControlReader(settings, topic, timeout, committed=False, start=start)
    try:
        view = ControlView()
        view.take(reader.read_on())
    finally:
        reader.close()
    return view.epoch


def out_of_time(settings: KafkaSettings, doing: str) -> OutOfTime:
    """Return the error for a transaction that the brokers gave up, or would have."""
    allowed = settings.transaction_timeout / 1000
    limit = settings.own("'kafka.transaction_timeout'")
    return OutOfTime(
        f"a transaction took longer than the {allowed:g} s of {limit} ({doing})",
        hint=f"the batch goes on in smaller transactions; raise {limit} if this "
        "comes again, and look for a quota or for brokers that are overloaded",
    )


def in_transaction(
    client: Client[Producer],
    topic: str,
    pairs: Sequence[Pair],
    timeout: int,
    is_newest: Callable[[], bool],
) -> int:
    """Write records in one transaction; returns the offset of the last one.

    Args:
        client: Who writes.
        topic: Where to.
        pairs: The records.
        timeout: Milliseconds to wait.
        is_newest: Whether no newer run has started; a fenced producer then had too little time.

    Raises:
        SinkError: Another run has taken over, no broker answers, or it refuses.
        OutOfTime: The brokers aborted the transaction, as when this machine stood still.
    """
    receipts = Receipts()
    doing = f"writing topic '{topic}'"
    try:
        client.api.begin_transaction()
        for key, value in pairs:
            client.api.produce(topic, value, key, 0, on_delivery=receipts)
        client.api.commit_transaction(timeout / 1000)
    except KafkaException as failure:
        error = client.trouble(receipts.error or failure, doing, timeout).as_sink()
        abort(client, timeout)
        if error_of(failure).name() in FENCED and is_newest():
            error = out_of_time(client.settings, doing)
        raise error from failure
    return receipts.offset


def abort(client: Client[TransactionalProducer], timeout: int) -> None:
    """Abort the open transaction if that is still possible; else the next run's fencing does."""
    try:
        client.api.purge()
        client.api.abort_transaction(timeout / 1000)
    except (KafkaException, SystemError):
        return
