"""Sample records without end: every minute new users appear, some of them late."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import count

from kaflow_engine.testing.sample.fake_stream import FakeRecord, FakeStream, fake_records

WINDOW = 60_000
"""How much event time one round fills; ms."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Endless:
    """What to make; equal values make equal bytes."""

    topics: Sequence[str]
    start: int
    """Timestamp of the first record; ms."""
    rate: float = 100.0
    """Records per second of event time, all topics together."""
    seed: int = 1
    entities: int = 100
    """How many users, devices, products and merchants there are in the first minute."""
    growth: int = 20
    """How many more there are in each later one."""
    late_profiles: float = 0.3
    """Share of the dimension entries that come some time into their minute."""
    broken: float = 0.01
    """Share of the events whose value is cut in the middle."""


def endless_records(stream: Endless) -> Iterator[FakeRecord]:
    """Make records in the order of their timestamps."""
    for number in count():
        yield from fake_records(
            FakeStream(
                topics=tuple(stream.topics),
                seed=stream.seed + number,
                rate=stream.rate,
                duration=WINDOW,
                start=stream.start + number * WINDOW,
                entities=stream.entities + number * stream.growth,
                late_profiles=stream.late_profiles,
                broken=stream.broken,
            )
        )
