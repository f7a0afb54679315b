"""Runs each query twice: over events that wait, with its result compared, and as they happen."""

import shutil
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property

from confluent_kafka import Message

from bench.measure.latency import Reader, now
from bench.measure.product import Product, measured
from bench.measure.rates import percentile
from bench.measure.throughput import PATIENCE_S, Numbers, read_through
from bench.nexmark.events import EPOCH, Events, events
from bench.nexmark.feed import PARTITIONS, create_topics, fill, paced
from bench.nexmark.queries import PREFIX, QUERIES, Query
from bench.nexmark.twin import check_result
from bench.options import Sizes
from kaflow_engine.connectors.kafka.admin import delete_topics
from kaflow_engine.testing.services.broker import Broker

Make = Callable[..., Product]
"""Gives the product with a pipeline file: name, file, options of `kaflow run`, settings."""

_SHARE = 0.5
"""Of the events of other runs, and of their batches."""
_FEW = 0.1
"""Batches of queries that do not read bids, as a share of those of the others."""
_CAUGHT_UP_S = 120.0
_SLACK_S = 30.0


@dataclass(frozen=True, kw_only=True)
class Nexmark:
    """What the queries share."""

    broker: Broker
    sizes: Sizes
    seed: int
    make: Make
    queries: Sequence[str]
    """Names of those that are taken."""

    @property
    def count(self) -> int:
        """How many events wait; whole epochs, and some behind the last window."""
        return max(int(self.sizes.events * _SHARE) // EPOCH, 1) * EPOCH

    @cached_property
    def events(self) -> Events:
        """Those that wait."""
        return events(0, self.count, self.seed)

    def fill(self) -> None:
        """Fill the topics."""
        create_topics(self.broker.settings, PREFIX)
        fill(self.broker.settings, PREFIX, self.count, self.seed)

    def take(self, number: int, say: Callable[[str], None]) -> dict[str, Numbers]:
        """Take one round of all queries.

        Args:
            number: Of the round.
            say: Takes each result, as a line.

        Raises:
            KaflowError: A query failed, or its result is not that of DuckDB.
        """
        found: dict[str, Numbers] = {}
        for query in (each for each in QUERIES if each.name in self.queries):
            found[query.name] = self._throughput(query, number) | self._live(query, number)
            rate = found[query.name]["records_per_s"]
            say(f"round {number}, nexmark {query.name}: {rate:,.0f} records/s")
        return found

    def _throughput(self, query: Query, number: int) -> Numbers:
        name = f"round{number}_{query.name}"
        batch = self.sizes.batch * _SHARE * (1 if "bid" in query.reads else _FEW)
        settings = {"max_records": str(max(int(batch), 1))}
        self.broker.create_topic(name, PARTITIONS)
        try:
            product = self.make(
                name, query.pipeline(PREFIX, name), "--until-caught-up", settings=settings
            )
            found, _ = read_through(product, self.broker.pid)
            found["rows"] = check_result(query, self.events, self.broker.settings, name)
            shutil.rmtree(product.state)
        finally:
            delete_topics(self.broker.settings, [name])
        return found

    def _live(self, query: Query, number: int) -> Numbers:
        kafka, seconds = self.broker.settings, self.sizes.latency_seconds
        name = f"live{number}_{query.name}"
        topics = [name, *create_topics(kafka, f"{name}_")]
        self.broker.create_topic(name, PARTITIONS)
        product = self.make(name, query.pipeline(f"{name}_", name))
        most = 2 * seconds + _SLACK_S
        try:
            with product, Reader(kafka, name, _time_of_row).running() as reader:
                product.until(lambda: product.live, PATIENCE_S, "a live stream")
                with paced(kafka, f"{name}_", query.reads, most, self.seed) as sent:
                    product.until(lambda: sent() > 0, _CAUGHT_UP_S, "a first event")
                    time.sleep(seconds)
                    start = now()
                    time.sleep(seconds)
                    stop = now()
                count = sent()
                product.until(lambda: _read(product) >= count, _CAUGHT_UP_S, f"{count} records")
                batches = measured(product.progress())
        finally:
            delete_topics(kafka, topics)
        if query.windows:
            spent = [batch.spent for batch in batches if batch.end >= start]
            return {
                "batch_p50_ms": percentile(spent, 0.50),
                "batch_p99_ms": percentile(spent, 0.99),
            }
        delays = [delay for at, delay in reader.delays if start <= at - delay < stop]
        return {"p50_ms": percentile(delays, 0.50), "p99_ms": percentile(delays, 0.99)}


def _read(product: Product) -> int:
    return sum(batch.records for batch in measured(product.progress()))


def _time_of_row(message: Message) -> int | None:
    """Return the event time of a row, which is that of the newest event in it."""
    return None if message.value() is None else message.timestamp()[1]
