"""Outputs over several readings of one topic are those of pipelines that read it one way each.

The engine is compared with itself: a pipeline in which a topic is read as events and as tables
gives each output the rows that it has in a pipeline of its own, where the topic is read in that way
only, in any batches, with replays, crashes and several tasks.
"""

# pyright: basic

from typing import Any

import pytest

from tests.property.dice import Dice
from tests.property.executor import How
from tests.property.one_topic import OneTopic
from tests.property.seeds import blocks, many
from tests.reference.records import Record

pytestmark = pytest.mark.slow

FAST, MANY = 5, 30
SCHEMA = {"id": "VARCHAR", "k": "VARCHAR", "v": "INTEGER"}
WAYS: dict[str, dict[str, Any]] = {
    "t": {},
    "every": {},
    "by_key": {"table": True},
    "by_id": {"table": True, "primary_key": ["id"]},
    "by_both": {"table": True, "primary_key": ["k", "id"], "retain": "20s"},
    "changes": {"table": True, "primary_key": ["id"], "operation": "header:op"},
}
LAST = {"last": {"from": "rows", "as": "table", "key": ["id"]}}
"""As `by_id`, where no record is without a value."""
QUERIES = (
    "SELECT id, k, v FROM {name}",
    "SELECT id, v FROM {name} WHERE v > 2",
    "SELECT k, count(*) AS n, sum(v) AS s FROM {name} GROUP BY k",
    "SELECT count(*) AS n FROM {name}",
    "SELECT k, median(v) AS m FROM {name} WHERE v < 8 GROUP BY k HAVING count(*) > 1",
)


def outputs(dice: Dice, *, last: bool) -> list[dict[str, Any]]:
    """Choose queries over some ways to read the topic."""
    found: list[dict[str, Any]] = []
    for number in range(dice.number(2, 4)):
        name = "last" if last and number == 0 else dice.pick(list(WAYS))
        query = dice.pick(QUERIES)
        output: dict[str, Any] = {"query": query.format(name=name), "topic": f"out{number}"}
        if "GROUP BY" in query or name == "last" or WAYS[name].get("table"):
            output["coalesce"] = "none"
        elif "count" not in query:
            output["key"] = "id"
        found.append(output | {"way": name})
    return found


def together(chosen: list[dict[str, Any]]) -> dict[str, Any]:
    """Write the pipeline with all of them."""
    names = {output["way"] for output in chosen} - {"t"}
    return {
        "name": "readings",
        "relations": {
            **{name: {"topic": "t", **WAYS[name]} for name in sorted(names - {"last"})},
            **(LAST | {"rows": {"query": "SELECT * FROM t"}} if "last" in names else {}),
        },
        "outputs": [{k: v for k, v in output.items() if k != "way"} for output in chosen],
        "partitions": 2,
    }


def alone(output: dict[str, Any]) -> dict[str, Any]:
    """Write the pipeline with one of them."""
    name = output["way"]
    way = WAYS["by_id" if name == "last" else name]
    own = {k: v for k, v in output.items() if k != "way"}
    own["query"] = own["query"].replace(f"FROM {name}", "FROM t")
    return {
        "name": "readings",
        "outputs": [own],
        "topics": {"t": way} if way else {},
        "partitions": 2,
    }


def records(dice: Dice, count: int, *, nulls: bool) -> list[Record]:
    """Draw records: rows, other rows of the same key, and null values."""
    found: list[Record] = []
    for n in range(count):
        name = dice.pick(["a", "b", "c"])
        value = {"id": name, "k": dice.pick(["x", "y", "z"]), "v": dice.number(0, 9)}
        found.append(
            Record(
                topic="t",
                offset=n,
                ts=1_767_225_600_000 + 1000 * n,
                key=dice.pick([name, name, name, None]),
                value=None if nulls and dice.one_in(6) else value,
                headers={"op": dice.pick(["c", "u", "u", "d"])} if dice.one_in(2) else {},
            )
        )
    return found


def rows_of(author: dict[str, Any], given: list[Record], seed: str) -> dict[str, list[tuple]]:
    """Run the engine; return the rows of each output in their order."""
    run = OneTopic(author, SCHEMA, How.of(seed))
    run.take(given, Dice(seed), 6)
    found: dict[str, list[tuple]] = {}
    for row in run.rows:
        sent = (row["key"], row["value"], row["timestamp"])
        found.setdefault(row["topic"], []).append(sent)
    return found


def check(seed: int) -> None:
    """Compare the two."""
    dice = Dice(f"readings {seed}")
    last = dice.one_in(3)
    chosen, given = outputs(dice, last=last), records(dice, dice.number(1, 30), nulls=not last)
    cuts = f"readings {seed}"
    found = rows_of(together(chosen), given, cuts)
    for output in chosen:
        expected = rows_of(alone(output), given, cuts).get(output["topic"], [])
        in_order = {key: [row for row in expected if row[0] == key] for key, *_ in expected}
        here = found.get(output["topic"], [])
        got = {key: [row for row in here if row[0] == key] for key, *_ in here}
        assert got == in_order, f"seed {seed}: {output}"


@pytest.mark.parametrize("seeds", blocks(0, FAST), ids=str)
def test_equals_readings_apart(seeds: range) -> None:
    for seed in seeds:
        check(seed)


@pytest.mark.property
@pytest.mark.parametrize("seeds", many(FAST, MANY), ids=str)
def test_many_equal_readings_apart(seeds: range) -> None:
    for seed in seeds:
        check(seed)
