"""Producers that take rows: that of the library of `engine/native`, or Python's client."""

from collections import deque
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from itertools import islice, repeat
from typing import Any, Protocol

import pyarrow as pa
import pyarrow.compute as pc
from confluent_kafka import KafkaError, KafkaException, Message, Producer

from kaflow_engine.connectors.kafka.client import LOGGER, Client, Complaints, KafkaSettings
from kaflow_engine.connectors.kafka.errors import raise_settings
from kaflow_engine.connectors.kafka.native.library import library
from kaflow_engine.connectors.kafka.native.producer import NativeProducer
from kaflow_engine.connectors.kafka.run_log.transactions import TransactionalProducer

_KEPT = 10


class RowProducer(TransactionalProducer, Protocol):
    """A client that takes rows from Arrow.

    Rows that are not delivered go to the `Refusals` it was opened with, at the latest when
    `flush` returns.
    """

    def write(self, rows: pa.Table) -> None:
        """Hand over rows in their order; what waits in the client is not bounded.

        Args:
            rows: `topic`, `key`, `value`, `timestamp` (less than 1 is taken for 1), `headers` and
                `partition` as in OUTPUT.

        Raises:
            KafkaException: The client does not take one.
        """
        ...

    def flush(self, timeout: float, /) -> int:
        """Wait so many seconds until all is acknowledged; return how many rows are not.

        Raises:
            KafkaException: The client is of no use any more.
        """
        ...

    def __len__(self) -> int:
        """Return how many rows are not acknowledged."""
        ...


@dataclass(frozen=True, slots=True)
class Refusal:
    """A row that the brokers did not take."""

    error: KafkaError
    topic: str
    size: int
    """Bytes of key and value."""


class Refusals:
    """The rows that were not taken; the first few are kept.

    Rows that the client threw away itself say nothing: another error made it do so.
    """

    def __init__(self) -> None:
        self.found: list[Refusal] = []

    def add(self, error: KafkaError, topic: str, size: int) -> None:
        """Take a row."""
        if not error.name().startswith("_PURGE") and len(self.found) < _KEPT:
            self.found.append(Refusal(error, topic, size))

    def __call__(self, error: KafkaError | None, message: Message) -> None:
        """Take the delivery report of a row."""
        if error is not None:
            size = len(message.key() or b"") + len(message.value() or b"")
            self.add(error, message.topic() or "", size)


def open_row_producer(
    settings: KafkaSettings, config: Mapping[str, object], refusals: Refusals
) -> Client[RowProducer]:
    """Return a producer.

    Args:
        settings: How to reach the brokers.
        config: Further librdkafka settings; they ask for reports of rows that were not delivered.
        refusals: Takes these.

    Raises:
        ModelError: Settings that the client refuses.
    """
    complaints = Complaints()
    if library() is not None:
        return Client(
            NativeProducer(settings, config, complaints, refusals.add), settings, complaints
        )
    all_settings = settings.librdkafka(
        **{**config, "error_cb": complaints, "on_delivery": refusals}
    )
    try:
        return Client(PythonProducer(all_settings, logger=LOGGER), settings, complaints)
    except KafkaException as failure:
        raise_settings(failure)


class PythonProducer(Producer):
    """Python's client, which makes objects of rows."""

    def write(self, rows: pa.Table) -> None:
        """Hand over rows; see `RowProducer`."""
        # produce_batch takes neither timestamps nor headers; map keeps the loop out of Python
        calls = map(
            self.produce,
            _few(rows["topic"]),
            _objects(rows["value"]),
            _objects(rows["key"]),
            _few(pc.fill_null(rows["partition"], -1)),
            repeat(None),
            repeat(None),
            # the client takes 0 for "now"
            _objects(pc.max_element_wise(rows["timestamp"], 1)),
            _headers(rows["headers"]),
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
