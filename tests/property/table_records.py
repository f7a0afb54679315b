"""Random records of topics that are tables: updates, deletes, and some that are bad."""

# pyright: basic

from collections import Counter
from collections.abc import Mapping
from typing import Any

from tests.property.dice import Dice
from tests.property.strategies import T0
from tests.reference.records import Batch, Record

OP = "op"
_KEYS = ["1", "1", "2", "2", "3", "4"]


def batches(dice: Dice, topics: Mapping[str, Any]) -> tuple[Batch, ...]:
    """Return what topics are given, cut into batches."""
    made: list[Batch] = []
    offsets: Counter[tuple[str, int]] = Counter()
    spread = {name: dice.pick([1, 1, 2]) for name in topics}
    now = 0
    for _ in range(dice.pick([1, 2, 2, 3, 4])):
        records: list[Record] = []
        for _ in range(dice.pick([1, 2, 3, 4, 5, 6, 8])):
            now += dice.pick([0, 1, 1, 2])
            record = _record(dice, topics, spread, T0 + (now + dice.pick([0, 0, 0, -3])) * 1000)
            place = record.topic, record.partition
            records.append(_placed(record, offsets[place]))
            offsets[place] += 1
        made.append(Batch(time=T0 + now * 1000 + 5_000, records=tuple(records)))
    return tuple(made)


def _placed(record: Record, offset: int) -> Record:
    return Record(
        topic=record.topic,
        partition=record.partition,
        offset=offset,
        ts=record.ts,
        key=record.key,
        value=record.value,
        raw=record.raw,
        headers=record.headers,
    )


def _record(dice: Dice, topics: Mapping[str, Any], spread: Mapping[str, int], ts: int) -> Record:
    topic = dice.pick(list(topics))
    spec = topics[topic]
    key = None if dice.one_in(25) else dice.pick(_KEYS)
    partition = int(key or 0) % spread[topic]
    if dice.one_in(40):
        return Record(topic=topic, offset=-1, ts=ts, partition=partition, key=key, raw=b"{")
    if dice.one_in(5):
        return Record(topic=topic, offset=-1, ts=ts, partition=partition, key=key)
    value: dict[str, Any] = {
        "id": None if dice.one_in(25) else key,
        "f": dice.pick([*_KEYS, None]),
        "g": dice.pick([1, 1, 2, None]),
        "n": dice.pick([1, 2, 3, None]),
        "s": dice.pick(["1", "2", "3", "x"] if dice.one_in(3) else ["1", "2", None]),
    }
    headers: dict[str, str] = {}
    if operation := spec.get("operation"):
        said = dice.pick(["c", "u", "r", "i", None, "d", "d"])
        if operation.startswith("column"):
            value[OP] = said
        elif said is not None:
            headers[OP] = said
    return Record(
        topic=topic,
        offset=-1,
        ts=ts,
        partition=partition,
        key=key,
        value=value,
        headers=headers,
    )
