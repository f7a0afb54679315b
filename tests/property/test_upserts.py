"""Changes of rows, projected, filtered and joined, are what is made of them one record at a time.

In any batches, with replays, crashes and several tasks. A case is a seed.
"""

# pyright: basic

import json
from dataclasses import replace
from typing import Any

import pytest

from tests.property.dice import Dice
from tests.property.executor import How
from tests.property.one_topic import OneTopic
from tests.property.seeds import blocks, many
from tests.reference.records import Record

pytestmark = pytest.mark.slow

FAST, MANY = 20, 220
SCHEMA = {"id": "INTEGER", "k": "VARCHAR", "v": "INTEGER", "op": "VARCHAR"}
MEANS = {None: "i", "c": "i", "r": "i", "i": "i", "u": "u", "d": "d"}


def pipeline(where: str, operation: str, key: str | None) -> dict[str, Any]:
    """Write the pipeline."""
    return {
        "name": "changes",
        "query": f"SELECT id, v * 2 AS twice, k FROM t{where and f' WHERE {where}'}",
        "output": {"topic": "out", **({"key": key} if key else {})},
        "topics": {"t": {"primary_key": ["id"], "operation": operation}},
        "partitions": 2,
    }


CONDITIONS = {
    "": (lambda value: True, lambda op: True),
    "v > 3": (lambda value: (value["v"] or 0) > 3, lambda op: True),
    "v > 3 AND _op <> 'd'": (lambda value: (value["v"] or 0) > 3, lambda op: op != "d"),
    "_op = 'u'": (lambda value: True, lambda op: op == "u"),
    "k = 'x' AND v < 7": (
        lambda value: value["k"] == "x" and value["v"] is not None and value["v"] < 7,
        lambda op: True,
    ),
}
"""Of each WHERE what asks it of a row, and of an operation."""


def expected(where: str, operation: str, records: list[Record]) -> list[tuple[Any, ...]]:
    """Take records one by one."""
    passes, wanted = CONDITIONS[where]
    found: list[tuple[Any, ...]] = []
    for record in records:
        value: Any = record.value
        if value is None:
            op, key = "d", record.key
        else:
            said = record.headers.get("op") if operation == "header:op" else value["op"]
            op, key = MEANS[said], value["id"]
        if key is None or not wanted(op):
            continue
        if op != "d" and not passes(value):
            if op == "i":
                continue
            op = "d"
        row = None
        if op != "d":
            assert value is not None
            twice = None if value["v"] is None else value["v"] * 2
            row = {"id": value["id"], "twice": twice, "k": value["k"]}
        found.append((str(key), row, record.ts))
    return found


def drawn(dice: Dice, count: int) -> list[Record]:
    """Draw records."""
    found: list[Record] = []
    for n in range(count):
        number, op = dice.number(1, 3), dice.pick([None, "c", "r", "u", "u", "d"])
        value = {
            "id": dice.pick([number, number, number, None]),
            "k": dice.pick(["x", "y", None]),
            "v": dice.pick([None, 1, 4, 5, 8]),
            "op": op,
        }
        found.append(
            Record(
                topic="t",
                offset=n,
                ts=1_767_225_600_000 + 1000 * n,
                key=dice.pick([str(number), str(number), None]),
                value=None if dice.one_in(5) else value,
                headers={} if op is None else {"op": op},
            )
        )
    return found


def check(seed: int) -> None:
    """Compare the two."""
    dice = Dice(f"upserts {seed}")
    where, operation = dice.pick(list(CONDITIONS)), dice.pick(["header:op", "column:op"])
    records, how = drawn(dice, dice.number(1, 30)), How.of(f"upserts {seed}")
    run = OneTopic(pipeline(where, operation, dice.pick([None, "id"])), SCHEMA, how)
    run.take(records, dice, 8)
    by_key: dict[str, list[Any]] = {}
    for row in run.rows:
        value = None if row["value"] is None else json.loads(row["value"])
        by_key.setdefault(row["key"].decode(), []).append((value, row["timestamp"]))
    wanted: dict[str, list[Any]] = {}
    for key, row, ts in expected(where, operation, records):
        wanted.setdefault(key, []).append((row, ts))
    assert by_key == wanted, f"seed {seed}: {where} {operation}"


def looking_up(seed: int) -> None:
    """Compare changes that look up a table or a dimension, whose records are among them."""
    dice = Dice(f"upserts that look up {seed}")
    kind, listed = dice.pick(["JOIN", "LEFT JOIN"]), dice.one_in(2)
    topics = {"t": {"primary_key": ["id"], "operation": "column:op"}}
    author = {
        **pipeline("", "column:op", None),
        "query": f"SELECT t.id, t.v, d.w FROM t {kind} d ON t.k = d.k WHERE d.w IS DISTINCT FROM 2",
        "topics": topics if listed else {**topics, "d": {"table": True, "primary_key": ["k"]}},
        "state": {"dimensions": ["d"] if listed else []},
    }
    records, how = drawn(dice, dice.number(1, 30)), How.of(f"upserts that look up {seed}")
    records = [replace(r, ts=r.ts + 1000 * n) for n, r in enumerate(records)]
    for n, after in enumerate(dice.some(records, 12)):
        k = dice.pick(["x", "y"])
        value = None if dice.one_in(4) else {"k": k, "w": dice.number(1, 3)}
        records.append(Record(topic="d", offset=n, ts=after.ts + 1, key=k, value=value))
    records.sort(key=lambda record: record.ts)
    others = [record for record in records if record.topic == "d"]
    records = [r if r.topic == "t" else replace(r, offset=others.index(r)) for r in records]
    run = OneTopic(author, SCHEMA, how, d={"k": "VARCHAR", "w": "INTEGER"})
    run.take(records, dice, 8)
    by_key: dict[str, list[Any]] = {}
    for row in run.rows:
        value = None if row["value"] is None else json.loads(row["value"])
        by_key.setdefault(row["key"].decode(), []).append(value)
    assert by_key == found_one_by_one(records, inner=kind == "JOIN"), f"seed {seed}: {author}"


def found_one_by_one(records: list[Record], *, inner: bool) -> dict[str, list[Any]]:
    """Take records one by one: what a change does not find does not pass, and a delete passes."""
    known: dict[Any, Any] = {}
    found: dict[str, list[Any]] = {}
    for record in records:
        value: Any = record.value
        if record.topic == "d":
            known.pop(record.key, None)
            if value is not None:
                known[value["k"]] = value["w"]
            continue
        key = record.key if value is None else value["id"]
        op = "d" if value is None else MEANS[value["op"]]
        if key is None:
            continue
        there = value is not None and value["k"] in known
        w = known[value["k"]] if there else None
        if op != "d" and ((inner and not there) or w == 2):
            if op == "i":
                continue
            op = "d"
        row = None if op == "d" else {"id": value["id"], "v": value["v"], "w": w}
        found.setdefault(str(key), []).append(row)
    return found


@pytest.mark.parametrize("seeds", blocks(0, FAST), ids=str)
def test_looking_up_equals_records_one_by_one(seeds: range) -> None:
    for seed in seeds:
        looking_up(seed)


@pytest.mark.property
@pytest.mark.parametrize("seeds", many(FAST, MANY), ids=str)
def test_many_looking_up_equal_records_one_by_one(seeds: range) -> None:
    for seed in seeds:
        looking_up(seed)


@pytest.mark.parametrize("seeds", blocks(0, FAST), ids=str)
def test_equals_records_one_by_one(seeds: range) -> None:
    for seed in seeds:
        check(seed)


@pytest.mark.property
@pytest.mark.parametrize("seeds", many(FAST, MANY), ids=str)
def test_many_equal_records_one_by_one(seeds: range) -> None:
    for seed in seeds:
        check(seed)
