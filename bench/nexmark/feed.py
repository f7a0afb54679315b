"""Events of Nexmark as JSON in topics: all at once, or as they happen."""

import multiprocessing
import os
from collections.abc import Callable, Generator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

import duckdb
import numpy as np
import pyarrow as pa
from confluent_kafka import Producer

from bench.feed.load import sending
from bench.measure.latency import now, sending_due
from bench.nexmark.events import EPOCH, START, events, side_table
from kaflow_engine.connectors.kafka.admin import create_topic
from kaflow_engine.connectors.kafka.client import KafkaSettings

KINDS = ("person", "auction", "bid")
PARTITIONS = 4
RATE = 1_000
"""Events a second: one in a millisecond."""
ON_THE_WAY = 250
"""Milliseconds from an event until Kafka has it, where all are sent at once."""

_CHUNK = 100_000
_LEAD_MS = 5_000
"""For how long events are made before the first one happens."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Sent:
    """An event as a record."""

    number: int
    topic: str
    partition: int
    value: bytes


def create_topics(kafka: KafkaSettings, prefix: str) -> list[str]:
    """Create the topics of all events, and fill that of the side input; return their names."""
    names = [f"{prefix}{kind}" for kind in (*KINDS, "side")]
    for name in names:
        create_topic(kafka, name, PARTITIONS, {"retention.ms": "-1"})
    with sending(kafka) as take:
        values = _encoded(side_table())
        for partition in range(PARTITIONS):
            take(names[-1], partition, [{"value": v} for v in values[partition::PARTITIONS]])
    return names


def fill(kafka: KafkaSettings, prefix: str, count: int, seed: int) -> None:
    """Fill the topics of events with the first ones; Kafka's time of each is a little later.

    Args:
        kafka: How to reach the brokers.
        prefix: Of the topics' names; they are there.
        count: How many events.
        seed: Of the events.
    """
    workers = min(os.cpu_count() or 1, PARTITIONS)
    while PARTITIONS % workers:
        workers -= 1  # each partition has one sender
    with multiprocessing.get_context("spawn").Pool(workers) as pool:
        shares = [(kafka, prefix, count, seed, share, workers) for share in range(workers)]
        pool.starmap(send, shares)


def send(
    kafka: KafkaSettings, prefix: str, count: int, seed: int, share: int, workers: int
) -> None:
    """Send the events of the partitions whose number is `share`, modulo `workers`."""
    with sending(kafka) as take:
        for first in range(0, count, _CHUNK):
            made = events(first, min(first + _CHUNK, count), seed)
            for kind in KINDS:
                table: pa.Table = getattr(made, kind)
                places, times = partitions(table), table["dateTime"].to_numpy() + ON_THE_WAY
                for partition in range(share, PARTITIONS, workers):
                    here = np.flatnonzero(places == partition)
                    values = _encoded(table.take(here))
                    rows = zip(values, times[here].tolist(), strict=True)
                    messages = [{"value": value, "timestamp": at} for value, at in rows]
                    if messages:
                        take(f"{prefix}{kind}", partition, messages)


def partitions(table: pa.Table, start: int = START) -> np.ndarray:
    """Return the partition of each event; each kind is in all of them."""
    numbers = table["dateTime"].to_numpy() - start
    return (numbers // EPOCH + numbers % EPOCH) % PARTITIONS


@contextmanager
def paced(
    kafka: KafkaSettings, prefix: str, kinds: Sequence[str], seconds: float, seed: int
) -> Generator[Callable[[], int]]:
    """Send events as they happen while the block runs; give a function that tells how many.

    Args:
        kafka: How to reach the brokers.
        prefix: Of the topics' names; they are there.
        kinds: Those that are sent; the others are among the thousand of a second, too.
        seconds: How long, at most.
        seed: Of the events.
    """
    lead = _LEAD_MS
    while True:
        start = now() + lead
        waiting = _records(prefix, kinds, int(seconds * RATE), seed, start)
        if now() < start:
            break
        lead *= 2  # the first events would be late on this machine

    sent = 0

    def send(producer: Producer) -> None:
        nonlocal sent
        due = now() - start
        while sent < len(waiting) and waiting[sent].number < due:
            record = waiting[sent]
            producer.produce(record.topic, record.value, partition=record.partition)
            sent += 1

    with sending_due(kafka, send):
        yield lambda: sent


def _records(prefix: str, kinds: Sequence[str], count: int, seed: int, start: int) -> list[Sent]:
    made = events(0, count, seed, start)
    found: list[Sent] = []
    for kind in kinds:
        table: pa.Table = getattr(made, kind)
        numbers = (table["dateTime"].to_numpy() - start).tolist()
        places = partitions(table, start).tolist()
        rows = zip(numbers, places, _encoded(table), strict=True)
        found += [Sent(number=n, topic=f"{prefix}{kind}", partition=p, value=v) for n, p, v in rows]
    return sorted(found, key=lambda record: record.number)


def _encoded(rows: pa.Table) -> list[bytes]:
    with duckdb.connect() as connection:
        connection.register("rows", rows)
        made = connection.sql("SELECT to_json(rows)::VARCHAR::BLOB AS value FROM rows")
        return made.to_arrow_table()["value"].to_pylist()
