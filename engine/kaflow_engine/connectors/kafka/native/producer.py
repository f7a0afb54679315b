"""A producer of the library of `engine/native`: rows leave from Arrow's buffers."""

import ctypes
import os
import sys
from collections.abc import Callable, Mapping
from ctypes import byref

import pyarrow as pa
import pyarrow.compute as pc
from confluent_kafka import KafkaError, KafkaException

from kaflow_engine.connectors.kafka.client import KafkaSettings
from kaflow_engine.connectors.kafka.native.library import (
    Column,
    Failure,
    Headers,
    Rows,
    library,
    open_handle,
)

Refused = Callable[[KafkaError, str, int], None]
"""Takes a row that was not delivered: why, its topic, and the bytes of key and value."""


class NativeProducer:
    """What `RowProducer` asks, with errors as Python's client raises them."""

    def __init__(
        self,
        settings: KafkaSettings,
        config: Mapping[str, object],
        complain: Callable[[KafkaError], None],
        refused: Refused,
    ) -> None:
        found = library()
        assert found is not None
        self._library, self._pid = found, os.getpid()
        self._complain, self._refused = complain, refused
        self._producer = open_handle("kaflow_producer_open", settings.librdkafka(**config))

    def __del__(self) -> None:
        # the threads of a client are not there in a process that was forked from its own, and one
        # that ends needs no farewell
        if getattr(self, "_producer", None) and self._pid == os.getpid() and not _is_ending():
            self._library.kaflow_producer_close(self._producer)

    def __len__(self) -> int:
        return self._library.kaflow_producer_waiting(self._producer)

    def write(self, rows: pa.Table) -> None:
        """Hand over rows (schema OUTPUT) in their order.

        Raises:
            KafkaException: The client does not take one.
        """
        for batch in rows.to_batches():
            if batch.num_rows:
                self._write(batch)

    def list_topics(self, *, timeout: float) -> None:
        """Return when a broker has answered."""
        code = self._library.kaflow_producer_reach(self._producer, _ms(timeout))
        if code:
            raise KafkaException(KafkaError(code))

    def init_transactions(self, timeout: float, /) -> None:
        """Get the identity of the transactional id; whoever had it before is fenced."""
        self._call("init", _ms(timeout))

    def begin_transaction(self) -> None:
        """Begin a transaction."""
        self._call("begin")

    def commit_transaction(self, timeout: float, /) -> None:
        """Commit the transaction."""
        self._call("commit", _ms(timeout))

    def abort_transaction(self, timeout: float, /) -> None:
        """Abort the transaction."""
        self._call("abort", _ms(timeout))

    def flush(self, timeout: float, /) -> int:
        """Wait until nothing is under way; return how many rows still are."""
        self._library.kaflow_producer_flush(self._producer, _ms(timeout))
        self._take_reports()
        return len(self)

    def poll(self, timeout: float, /) -> None:
        """Take reports; wait for one as long as that."""
        self._library.kaflow_producer_poll(self._producer, _ms(timeout))
        self._take_reports()

    def purge(self) -> None:
        """Throw away what is under way."""
        self._library.kaflow_producer_purge(self._producer)

    def _write(self, rows: pa.RecordBatch) -> None:
        topics = rows["topic"].dictionary_encode()
        names: list[str] = topics.dictionary.to_pylist()
        partitions = pc.fill_null(rows["partition"], -1)  # lives as long as it is read
        placed = rows["partition"].null_count < rows.num_rows
        headers = _headers(rows["headers"])
        columns = Rows(
            rows=rows.num_rows,
            topics=(ctypes.c_char_p * len(names))(*(name.encode() for name in names)),
            topic=_numbers(topics.indices) if len(names) > 1 else None,
            partition=_numbers(partitions) if placed else None,
            timestamp=_numbers(rows["timestamp"]),
            key=_column(rows["key"]),
            value=_column(rows["value"]),
            headers=None if headers is None else ctypes.pointer(headers),
        )
        failure = Failure()
        taken = self._library.kaflow_producer_produce(
            self._producer, byref(columns), len(names), byref(failure)
        )
        if taken < rows.num_rows:
            raise _failed(failure)

    def _call(self, name: str, *arguments: int) -> None:
        failure = Failure()
        function = getattr(self._library, f"kaflow_producer_{name}")
        function(self._producer, *arguments, byref(failure))
        if failure.code:
            raise _failed(failure)

    def _take_reports(self) -> None:
        words, size = ctypes.create_string_buffer(512), ctypes.c_size_t()
        while code := self._library.kaflow_producer_refusal(
            self._producer, words, len(words), byref(size)
        ):
            self._refused(KafkaError(code), words.value.decode(), size.value)
        fatal = ctypes.c_int()
        while code := self._library.kaflow_producer_report(
            self._producer, words, len(words), byref(fatal)
        ):
            text = words.value.decode(errors="replace")
            if fatal.value:
                raise KafkaException(KafkaError(code, text, fatal=True))
            self._complain(KafkaError(code, text))


def _failed(failure: Failure) -> KafkaException:
    text = failure.words.decode(errors="replace")
    marks = (bool(mark) for mark in (failure.fatal, failure.retriable, failure.aborts))
    return KafkaException(KafkaError(failure.code, text or None, *marks))


def _column(array: pa.Array) -> Column:
    """Return where texts, bytes or lists are; what lists are of is another column."""
    valid, ends, *data = array.buffers()
    return Column(
        ends=ends.address,
        data=data[0].address if data and data[0] is not None else None,
        valid=None if valid is None else valid.address,
        first=array.offset,
    )


def _headers(lists: pa.ListArray) -> Headers | None:
    """Return where headers are; None: no row has any."""
    if not pc.any(pc.greater(pc.list_value_length(lists), 0)).as_py():
        return None
    pairs = lists.values
    return Headers(lists=_column(lists), key=_column(pairs.field(0)), value=_column(pairs.field(1)))


def _numbers(array: pa.Array) -> int:
    data = array.buffers()[1]
    return data.address + array.offset * array.type.bit_width // 8


def _ms(seconds: float) -> int:
    return int(seconds * 1000)


def _is_ending() -> bool:
    return sys is None or sys.is_finalizing()
