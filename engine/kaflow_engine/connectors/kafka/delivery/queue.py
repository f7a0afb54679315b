"""Rows on their way through a client's queue to the brokers."""

import time

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from confluent_kafka import KafkaError, KafkaException

from kaflow_engine.connectors.kafka.delivery.pace import Pace
from kaflow_engine.connectors.kafka.delivery.producer import Writer

CHUNK_ROWS = 20_000
_CHUNKS = 4
"""Chunks that fill the queue."""
_LOOK_S = 0.01


class TooSlow(Exception):
    """The brokers take rows, but not as fast as the transaction needs it."""


class Outgoing:
    """The rows of one delivery, which leave in their order."""

    def __init__(self, writer: Writer, rows: pa.Table, pace: Pace) -> None:
        self._writer, self._rows, self._pace = writer, rows, pace
        self._producer = writer.client.api
        self._ends = np.concatenate([[0], np.cumsum(sizes_of(rows))])
        self.at = 0
        """Rows that were handed to the client."""

    @property
    def left(self) -> bool:
        """Whether there are rows that the client does not have."""
        return self.at < self._rows.num_rows

    def fill(self) -> pa.Table:
        """Hand over rows until there are no more, or time is up; return which.

        Raises:
            KafkaException: No broker acknowledges any.
        """
        first, until = self.at, time.monotonic() + self._pace.fill
        self._take_chunk()
        while self.left and self._has_room(until):
            self._take_chunk()
        return self._rows.slice(first, self.at - first)

    def flush(self) -> None:
        """Return when all that was handed over is acknowledged.

        Raises:
            KafkaException: A row was refused, or no broker acknowledges any.
            TooSlow: The transaction has no more time to wait.
        """
        start = progress = time.monotonic()
        waiting = len(self._producer)
        while waiting:
            left = self._producer.flush(max(min(1.0, self._pace.stall / 4), _LOOK_S))
            now = time.monotonic()
            if self._writer.refusals.found:
                break
            progress = now if left < waiting else progress
            waiting = left
            self._require_progress(progress)
            if waiting and now - start > self._pace.flush:
                raise TooSlow
        if self._writer.refusals.found:
            raise KafkaException(self._writer.refusals.found[0].error)

    def _has_room(self, until: float) -> bool:
        """Wait until the queue takes another chunk; False when time is up before."""
        progress, waiting = time.monotonic(), len(self._producer)
        while True:
            if time.monotonic() > until:
                return False
            if self._waiting() <= self._pace.queued:
                return True
            self._producer.poll(_LOOK_S)
            if (left := len(self._producer)) < waiting:
                progress, waiting = time.monotonic(), left
            self._require_progress(progress)

    def _require_progress(self, since: float) -> None:
        if time.monotonic() - since > self._pace.stall:
            raise KafkaException(KafkaError(KafkaError.REQUEST_TIMED_OUT))

    def _waiting(self) -> int:
        """Return the bytes of the rows that wait in the client."""
        return int(self._ends[self.at] - self._ends[max(0, self.at - len(self._producer))])

    def _take_chunk(self) -> None:
        full: np.int64 = self._ends[self.at] + self._pace.queued // _CHUNKS
        behind = int(np.searchsorted(self._ends, full, "right")) - 1
        end = min(max(behind, self.at + 1), self.at + CHUNK_ROWS)
        part = self._rows.slice(self.at, end - self.at)
        self._producer.write(part)
        self.at = end


def sizes_of(rows: pa.Table) -> np.ndarray[tuple[int], np.dtype[np.int64]]:
    """Return the bytes of each row; those of headers are spread over all rows."""
    lengths = (pc.fill_null(pc.binary_length(rows[name]), 0) for name in ("key", "value"))
    headers = pc.list_flatten(rows["headers"]).nbytes // max(1, rows.num_rows)
    return pc.add(*lengths).to_numpy().astype(np.int64) + headers
