"""From raw records to facts in their place, or to dead letters and skips (sections 1, 2 and 6)."""

from collections import Counter
from dataclasses import dataclass, replace

from tests.reference.pipeline import OraclePipeline, Topic
from tests.reference.records import Batch, Fact, Record
from tests.reference.sources import UNREADABLE

_DIMENSION, _EVENT_SIDE, _DRIVING = range(3)
_PHASES = ("decode", "event_time", "read")


class Stopped(Exception):
    """A bad record in a topic with `on_error: fail`."""


@dataclass(frozen=True, slots=True)
class Arrivals:
    """A batch taken apart."""

    facts: tuple[Fact, ...]
    """In the one order of section 1."""
    refused: tuple[tuple[Record, str], ...]
    """Bad records with their phase, and those that are `skipped`."""
    side_counters: Counter[str]
    """Of the refused ones that drive nothing."""
    seen: dict[tuple[str, int], int]
    """Greatest good ts by partition."""


def arrive(pipeline: OraclePipeline, number: int, batch: Batch) -> Arrivals:
    """Sort a batch into facts, dead letters and skipped records."""
    facts: list[Fact] = []
    refused: list[tuple[Record, str]] = []
    counters: Counter[str] = Counter()
    seen: dict[tuple[str, int], int] = {}
    used = {name: pipeline.used(name) for name in pipeline.topics}
    drive = {chain.driving_topic for chain in pipeline.chains}
    drive |= {
        name
        for name, topic in pipeline.topics.items()
        if any(map(topic.finds_several, pipeline.sides_of(name)))
    }
    for record in sorted(batch.records, key=lambda r: (r.topic, r.partition, r.offset)):
        topic = pipeline.topics[record.topic]
        what = _judge(topic, record, batch.time, used[record.topic])
        if what in _PHASES and topic.on_error != "dead_letter":
            if topic.on_error == "fail":
                raise Stopped(record.topic)
            what = "skipped"
        if isinstance(what, int):
            part = (record.topic, record.partition)
            seen[part] = max(what, seen.get(part, what))
            role = _role(pipeline, topic)
            place = (number, seen[part], role, record.topic, record.partition, record.offset)
            facts.append(Fact(_read(topic, record), what, place))
            continue
        refused.append((record, what))
        if record.topic not in drive:
            counters["skipped_side" if what == "skipped" else "side_dead_letters"] += 1
    facts.sort(key=lambda fact: fact.position)
    return Arrivals(tuple(facts), tuple(refused), counters, seen)


def _judge(topic: Topic, record: Record, batch_time: int, used: frozenset[str]) -> int | str:
    """Return the event time of a good record, else why it is none."""
    if record.raw is not None:
        return "decode"
    if UNREADABLE in record.headers:
        return "read"
    if record.value is None:
        if not topic.dimension and topic.on_null == "skip":
            return "skipped"
        ts: object = record.ts
    else:
        own = used & set(topic.columns)
        if any(_breaks(topic.columns[name], record.value.get(name)) for name in own):
            return "decode"
        ts = record.ts if topic.event_time is None else record.value.get(topic.event_time)
    if not isinstance(ts, int) or ts > batch_time + topic.max_future:
        return "event_time"
    return ts


def _read(topic: Topic, record: Record) -> Record:
    """Return a record whose value has the columns that every record has, where no own one hides
    them; a null value stays one only where it deletes.
    """
    if record.value is None and topic.on_null == "skip":
        return record
    every = dict(
        _key=record.key,
        _topic=record.topic,
        _partition=record.partition,
        _offset=record.offset,
        _headers=record.headers,
    )
    is_null = record.value is None
    return replace(record, value={**every, **(record.value or {})}, is_null=is_null)


def _breaks(kind: str, value: object) -> bool:
    """Tell whether a value is not of its declared type; as much of it as the tests need.

    Only columns that the query reads are looked at.
    """
    return kind in {"BIGINT", "INTEGER", "SMALLINT"} and isinstance(value, str)


def _role(pipeline: OraclePipeline, topic: Topic) -> int:
    if not any(pipeline.sides_of(topic.name)):
        return _DRIVING
    if pipeline.before and topic.primary:
        return _DRIVING + 1
    return _DIMENSION if topic.dimension else _EVENT_SIDE
