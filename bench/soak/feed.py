"""A steady load from a process of its own: clicks, and profiles, some late and some missing."""

import multiprocessing
import signal
import time
from collections.abc import Iterator
from ctypes import c_bool, c_int64
from random import Random
from typing import Any, Self

from confluent_kafka import Producer

from kaflow_engine.connectors.kafka.client import KafkaSettings
from kaflow_engine.errors import RunError

CLICKS, PROFILES = "soak_clicks", "soak_profiles"
KEYS = 20_000
"""Users that have a profile from the beginning."""

_STEP_S = 0.01
_NEW = 0.05
"""Share of clicks of a session that no one has seen: half of them get a profile later."""
_LATE_S = 5.0
_SLOTS = 100_000
"""Ids of such sessions come round, so that the dimension keeps its size: long after expiry."""

Sent = tuple[str, bytes, bytes | None]
"""Topic, key, value."""


def soak_records(seed: int = 0) -> Iterator[tuple[Sent, Sent | None]]:
    """Make clicks without end, each with the profile that must follow it seconds later, if any."""
    random = Random(seed)
    number = 0
    slot = 0
    while True:
        if random.random() < _NEW:
            user, slot = b"s%d" % slot, (slot + 1) % _SLOTS
            late = _profile(user) if slot % 2 else None
        else:
            user, late = b"u%d" % random.randrange(KEYS), None
        number += 1
        yield (CLICKS, user, _click(user, number)), late


class SoakFeed:
    """Sends at a rate while the block runs."""

    def __init__(self, kafka: KafkaSettings, rate: float, partitions: int) -> None:
        context = multiprocessing.get_context("spawn")
        self._sent: Any = context.Value(c_int64, 0)
        self._ended: Any = context.Value(c_bool, False)
        self._process = context.Process(
            target=_feed, args=(kafka, rate, partitions, self._sent, self._ended), daemon=True
        )

    def __enter__(self) -> Self:
        self._process.start()
        return self

    def __exit__(self, *about: object) -> None:
        self._ended.value = True
        self._process.join(30)
        self._process.kill()

    @property
    def sent(self) -> int:
        """Records sent so far."""
        return int(self._sent.value)


def _feed(kafka: KafkaSettings, rate: float, partitions: int, sent: Any, ended: Any) -> None:
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the parent ends us
    producer = Producer(kafka.librdkafka(**{"linger.ms": 5, "compression.type": "lz4"}))
    for user in range(KEYS):
        producer.produce(PROFILES, _profile(b"u%d" % user)[2], b"u%d" % user)
        producer.poll(0)
    records = soak_records()
    later: list[tuple[float, Sent]] = []
    gone: list[tuple[float, Sent]] = []
    began = time.monotonic()
    count = 0
    while not ended.value:
        at = time.monotonic() - began
        while count < at * rate:
            (topic, _, value), late = next(records)
            producer.produce(topic, value, partition=count % partitions)
            count += 1
            if late is not None:
                later.append((at + _LATE_S, late))
                # a tombstone: the dimension keeps its size, and the next one of that id waits again
                gone.append((at + 2 * _LATE_S, (PROFILES, late[1], None)))
        count += _send_due(producer, later, at) + _send_due(producer, gone, at)
        sent.value = count
        producer.poll(0)
        time.sleep(_STEP_S)
    if producer.flush(20):
        raise RunError("the broker did not take all records")


def _send_due(producer: Producer, waiting: list[tuple[float, Sent]], at: float) -> int:
    due = 0
    while due < len(waiting) and waiting[due][0] <= at:
        topic, key, value = waiting[due][1]
        producer.produce(topic, value, key)
        due += 1
    del waiting[:due]
    return due


def _click(user: bytes, number: int) -> bytes:
    return b'{"user_id":"%s","action":"click_%d","timestamp":%d,"amount":%.1f,"sid":"s%d"}' % (
        user,
        number % 7,
        time.time_ns() // 1_000_000,
        number % 1000 / 10,
        number,
    )


def _profile(user: bytes) -> Sent:
    value = b'{"user_id":"%s","subscription_tier":"tier_1","full_name":"Name of %s"}' % (user, user)
    return (PROFILES, user, value)
