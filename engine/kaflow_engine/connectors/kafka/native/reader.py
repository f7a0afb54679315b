"""A reader of the library of `engine/native`: one consumer, whose records come as Arrow."""

import ctypes
import os
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import pyarrow as pa
from confluent_kafka import KafkaError

from kaflow_engine.connectors.kafka.client import KafkaSettings
from kaflow_engine.connectors.kafka.errors import BrokerAway, trouble
from kaflow_engine.connectors.kafka.native.library import (
    BinaryView,
    Range,
    View,
    library,
    open_handle,
)
from kaflow_engine.errors import SourceError
from kaflow_engine.flow.records import HEADERS, RECORDS

EXACT: Mapping[str, object] = {
    "auto.offset.reset": "error",
    "topic.metadata.propagation.max.ms": 5_000,
}
"""Of a client that reads ranges which were there when they were asked for."""
_SETTINGS: dict[str, object] = {
    "group.id": "kaflow-read",
    "enable.auto.commit": False,
    "enable.auto.offset.store": False,
    "enable.partition.eof": True,
    "isolation.level": "read_committed",
    **EXACT,
    "allow.auto.create.topics": False,
    "fetch.queue.backoff.ms": 5,
    "fetch.wait.max.ms": 20,
    "fetch.error.backoff.ms": 20,
    # what is fetched behind the end of a range is thrown away
    "queued.min.messages": 20_000,
    "queued.max.messages.kbytes": 8 << 10,
}
_ROWS, _BYTES = 100_000, 64 << 20
"""Of a batch of records, at most."""
_POLL_MS = 100
_TIMED_OUT = -185
_ALL, _ENOUGH, _WAITING, _FAILED = range(4)
_UNUSED = "GROUP_AUTHORIZATION_FAILED"
"""The client asks for its group's coordinator, but the group is never used."""


@dataclass(frozen=True, slots=True)
class TopicRange:
    """The offsets from `start` to before `end` of a partition."""

    topic: str
    partition: int
    start: int
    end: int


class Reader:
    """A consumer that reads ranges, for one thread at a time."""

    def __init__(self, settings: KafkaSettings) -> None:
        found = library()
        assert found is not None
        self._library, self._settings, self._pid = found, settings, os.getpid()
        self._reader = open_handle("kaflow_reader_open", settings.librdkafka(**_SETTINGS))

    def __del__(self) -> None:
        # the threads of a client are not there in a process that was forked from its own
        if getattr(self, "_reader", None) and self._pid == os.getpid():
            self._library.kaflow_reader_close(self._reader)

    def read(
        self, ranges: Sequence[TopicRange], timeout: int
    ) -> Iterator[tuple[int, pa.RecordBatch]]:
        """Yield committed records (RECORDS) of ranges, with the number of their range.

        Args:
            ranges: Those of one partition come in order, those of several as they arrive.
            timeout: Milliseconds without any record after which it fails.

        Raises:
            SourceError: They cannot be read.
            LossSuspected: The first of a range is not there.
        """
        wanted = [Range(r.topic.encode(), r.partition, r.start, r.end) for r in ranges]
        code = self._library.kaflow_reader_begin(
            self._reader, (Range * len(wanted))(*wanted), len(wanted)
        )
        if code:
            raise self._trouble(KafkaError(code), ranges, timeout, ())
        complaints: list[KafkaError] = []
        progress = time.monotonic()
        try:
            while True:
                filled = self._library.kaflow_reader_fill(self._reader, _ROWS, _BYTES, _POLL_MS)
                for number, each in enumerate(ranges):
                    if batch := self._batch(number, each):
                        progress = time.monotonic()
                        yield number, batch
                if filled == _ALL:
                    return
                reports = self._reports()
                complaints += reports
                if filled == _FAILED and (failures := [r for r in reports if r.name() != _UNUSED]):
                    raise self._trouble(failures[-1], ranges, timeout, complaints)
                if time.monotonic() - progress > timeout / 1000:
                    if not complaints:
                        raise silent(ranges, timeout)
                    raise self._trouble(KafkaError(_TIMED_OUT), ranges, timeout, complaints)
        finally:
            self._library.kaflow_reader_end(self._reader)

    def _batch(self, number: int, of: TopicRange) -> pa.RecordBatch | None:
        chunk = self._library.kaflow_reader_chunk(self._reader, number)
        if not chunk:
            return None
        view, owner = chunk.contents, _Owner(self._library, chunk)
        rows = view.rows
        columns = [
            pa.repeat(pa.scalar(of.topic), rows),
            pa.repeat(pa.scalar(of.partition, pa.int32()), rows),
            _numbers(view.offset, rows, owner),
            _numbers(view.timestamp, rows, owner),
            _binary(view.key, rows, pa.binary(), owner),
            _binary(view.value, rows, pa.binary(), owner),
            _headers(view, owner),
        ]
        return pa.RecordBatch.from_arrays(columns, schema=RECORDS)

    def _reports(self) -> list[KafkaError]:
        words, found = ctypes.create_string_buffer(512), list[KafkaError]()
        while code := self._library.kaflow_reader_report(self._reader, words, len(words)):
            found.append(KafkaError(code, words.value.decode(errors="replace")))
        return found

    def _trouble(
        self,
        error: KafkaError,
        ranges: Sequence[TopicRange],
        timeout: int,
        complaints: Sequence[KafkaError],
    ) -> SourceError:
        doing = f"reading topic {_topics(ranges)}"
        found = trouble(error, doing, self._settings.bootstrap, timeout, tuple(complaints))
        found.hint = None if found.hint is None else self._settings.own(found.hint)
        return found.as_source()


def silent(ranges: Sequence[TopicRange], timeout: int) -> BrokerAway:
    """Return the error of ranges whose end does not come."""
    return BrokerAway(
        f"topic {_topics(ranges)} gave no more records within {timeout / 1000:g} s",
        hint="a transaction that writes to it may be open, or the topic is gone",
    )


def _topics(ranges: Sequence[TopicRange]) -> str:
    return ", ".join(f"'{topic}'" for topic in dict.fromkeys(each.topic for each in ranges))


class _Owner:
    """Keeps the buffers of a chunk as long as any array uses them."""

    def __init__(self, library: ctypes.CDLL, chunk: object) -> None:
        self._library, self._chunk = library, chunk

    def __del__(self) -> None:
        self._library.kaflow_chunk_free(self._chunk)


_OPEN = threading.local()


def reader_of(settings: KafkaSettings) -> Reader:
    """Return the reader of this thread, which is kept for the batches to come."""
    kept: dict[tuple[int, KafkaSettings], Reader] = _OPEN.__dict__.setdefault("readers", {})
    key = os.getpid(), settings
    if key not in kept:
        kept[key] = Reader(settings)
    return kept[key]


def _buffer(address: int | None, size: int, owner: _Owner) -> pa.Buffer:
    return pa.foreign_buffer(address, size, owner) if size and address else pa.py_buffer(b"")


def _numbers(address: int, rows: int, owner: _Owner) -> pa.Array:
    return pa.Array.from_buffers(pa.int64(), rows, [None, _buffer(address, 8 * rows, owner)])


def _binary(view: BinaryView, rows: int, kind: pa.DataType, owner: _Owner) -> pa.Array:
    valid = _buffer(view.valid, (rows + 7) // 8, owner) if view.nulls else None
    ends, data = _buffer(view.ends, 4 * (rows + 1), owner), _buffer(view.data, view.size, owner)
    return pa.Array.from_buffers(kind, rows, [valid, ends, data], view.nulls)


def _headers(view: View, owner: _Owner) -> pa.Array:
    count = view.headers
    keys = _binary(view.header_key, count, pa.string(), owner)
    values = _binary(view.header_value, count, pa.binary(), owner)
    pairs = pa.StructArray.from_arrays([keys, values], fields=list(HEADERS.value_type))
    ends = _buffer(view.header_ends, 4 * (view.rows + 1), owner)
    return pa.Array.from_buffers(HEADERS, view.rows, [None, ends], children=[pairs])
