"""Puts sample records of several topics into one stream, in the order of time."""

import heapq
import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import count, islice
from random import Random

from kaflow_engine.testing.sample.fake import BASE, Draw, FakeTopic, fake_topic

_UPDATES = 0.02
"""Share of the stream that changes a dimension while there are events too."""

_HORIZON = 10_000
"""How late a late profile comes at most when the stream has no end; ms."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FakeStream:
    """What to make; equal values make equal bytes."""

    topics: tuple[str, ...]
    seed: int = 1
    rate: float = 100.0
    """Records per second of event time, all topics together."""
    duration: int | None = None
    """How much event time to fill; ms. None: without end."""
    max_records: int | None = None
    start: int = BASE
    """Timestamp of the first record; ms."""
    entities: int = 100
    """How many users, devices, products and merchants there are."""
    late_profiles: float = 0.0
    """Share of the dimension entries that come some time after the first events."""
    broken: float = 0.0
    """Share of the events whose value is cut in the middle."""


@dataclass(frozen=True, slots=True)
class FakeRecord:
    """One record as it goes to Kafka."""

    topic: str
    key: bytes
    value: bytes
    timestamp: int
    """ms"""
    headers: tuple[tuple[str, bytes], ...] = ()


def fake_records(stream: FakeStream) -> Iterator[FakeRecord]:
    """Make the records: an entry for every entity of the dimensions, then events and changes.

    Raises:
        UnknownName: a topic for which there is no generator.
    """
    makers = {name: _Maker(name, fake_topic(name), stream) for name in stream.topics}
    return islice(_in_order(makers, stream), stream.max_records)


class _Maker:
    """Makes the records of one topic; another topic beside it changes none of them."""

    def __init__(self, name: str, topic: FakeTopic, stream: FakeStream) -> None:
        self._name = name
        self._topic = topic
        self._stream = stream
        self._chance = Random(f"{stream.seed}:{name}")
        self._numbers = count()

    @property
    def is_dimension(self) -> bool:
        return bool(self._topic.dimension)

    def draw(self, ts: int) -> Draw:
        return Draw(self._chance, next(self._numbers), ts, self._stream.entities)

    def event(self, ts: int) -> FakeRecord:
        value = self._topic.make(self.draw(ts))
        broken = self._chance.random() < self._stream.broken
        return self._record(str(value[self._topic.key]), value, ts, broken)

    def entry(self, entity: int, ts: int) -> FakeRecord:
        key = f"{self._topic.dimension}{entity}"
        value = {self._topic.key: key, **self._topic.make(self.draw(ts))}
        return self._record(key, value, ts)

    def _record(
        self, key: str, value: Mapping[str, object], ts: int, broken: bool = False
    ) -> FakeRecord:
        data = json.dumps(value, separators=(",", ":")).encode()
        return FakeRecord(self._name, key.encode(), data[: len(data) // 2] if broken else data, ts)


def _in_order(makers: Mapping[str, _Maker], stream: FakeStream) -> Iterator[FakeRecord]:
    chance = Random(stream.seed)
    events = [name for name, maker in makers.items() if not maker.is_dimension]
    dimensions = [name for name, maker in makers.items() if maker.is_dimension]
    late: list[tuple[int, str, int]] = []
    for name in dimensions:
        for entity in range(1, stream.entities + 1):
            if chance.random() < stream.late_profiles:
                delay = int(chance.random() * _horizon(stream))
                heapq.heappush(late, (stream.start + delay, name, entity))
            else:
                yield makers[name].entry(entity, stream.start)
    for number in count():
        elapsed = int(number * 1000 / stream.rate)
        if stream.duration is not None and elapsed >= stream.duration:
            break
        ts = stream.start + elapsed
        while late and late[0][0] <= ts:
            due, name, entity = heapq.heappop(late)
            yield makers[name].entry(entity, due)
        if events and not (dimensions and chance.random() < _UPDATES):
            yield makers[events[number % len(events)]].event(ts)
        elif dimensions:
            name = dimensions[int(chance.random() * len(dimensions))]
            yield makers[name].entry(1 + int(chance.random() * stream.entities), ts)
        else:
            return
    while late:
        due, name, entity = heapq.heappop(late)
        yield makers[name].entry(entity, due)


def _horizon(stream: FakeStream) -> int:
    if stream.duration is not None:
        return stream.duration
    if stream.max_records is not None:
        return int(stream.max_records * 1000 / stream.rate)
    return _HORIZON
