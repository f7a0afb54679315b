"""What is measured of any engine, from outside: how its topic of rows grows, and the machine."""

import hashlib
import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field

from confluent_kafka.admin import AdminClient

from bench.measure.latency import now
from bench.measure.rates import median
from bench.measure.rows import rows_of
from kaflow_engine.connectors.kafka.admin import offsets
from kaflow_engine.connectors.kafka.client import Client, KafkaSettings, open_admin

SETTLED_S = 3.0
"""A topic that has not grown for so long has all rows."""
_BLOCK = bytes(1 << 20)
_BLOCKS = 200


@dataclass(slots=True, kw_only=True)
class Growth:
    """How many offsets of a topic are committed: rows, and the marks of transactions."""

    kafka: KafkaSettings
    topic: str
    partitions: int
    samples: list[tuple[int, int]] = field(default_factory=list[tuple[int, int]])
    """Epoch milliseconds and committed offsets, whenever there are more."""
    _client: Client[AdminClient] | None = None

    def look(self) -> int:
        """Look once more, and return how many there are."""
        self._client = self._client or open_admin(self.kafka)
        known = {self.topic: self.partitions}
        ends = offsets(self.kafka, known, "latest", client=self._client)[self.topic]
        total = sum(ends.values())
        if total > (self.samples[-1][1] if self.samples else 0):
            self.samples.append((now(), total))
        return total

    def complete(self, rows: int) -> bool:
        """Say whether all rows are there, and nothing comes behind them."""
        return self.look() >= rows and now() - self.samples[-1][0] > SETTLED_S * 1000


def rate(samples: Sequence[tuple[int, int]]) -> float:
    """Return the growth a second from half of the rows to the last of them.

    Engines commit now and then: it is taken from the commit with which the first half was
    complete. What comes before is start and warm-up.

    Raises:
        ValueError: All came at once.

    >>> rate([(1000, 10), (2000, 60), (3000, 80), (4000, 100)])
    20.0
    """
    last, total = samples[-1]
    for at, count in samples[:-1]:
        if 2 * count >= total:
            return (total - count) / (last - at) * 1000
    raise ValueError("the second half of the rows came at once: there are too few to measure")


def count_rows(kafka: KafkaSettings, topic: str) -> int:
    """Return how many records a reader of committed records finds."""
    return sum(rows.num_rows for rows in rows_of(kafka, topic))


def calibration_ms(cores: int) -> float:
    """Return how long each core of the machine takes for the same work, in milliseconds."""

    def work(_: int) -> None:
        digest = hashlib.sha256()
        for _ in range(_BLOCKS):
            digest.update(_BLOCK)

    spent: list[float] = []
    with ThreadPoolExecutor(cores) as pool:
        for _ in range(3):
            began = time.monotonic()
            list(pool.map(work, range(cores)))
            spent.append((time.monotonic() - began) * 1000)
    return round(median(spent), 1)
