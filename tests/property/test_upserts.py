"""Changes of rows, projected and filtered, are what a record-at-a-time interpreter makes of them.

In any batches, with replays, crashes and several tasks. A case is a seed.
"""

# pyright: basic

import json
from typing import Any

import pytest

from tests.property.dice import Dice
from tests.property.executor import How
from tests.property.one_topic import OneTopic
from tests.property.test_against_oracle import blocks
from tests.reference.records import Record

FAST, MANY = 20, 280
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


@pytest.mark.parametrize("seeds", blocks(0, FAST), ids=str)
def test_equals_records_one_by_one(seeds: range) -> None:
    for seed in seeds:
        check(seed)


@pytest.mark.property
@pytest.mark.parametrize("seeds", blocks(FAST, MANY), ids=str)
def test_many_equal_records_one_by_one(seeds: range) -> None:
    for seed in seeds:
        check(seed)
