"""A stream that looks up groups of its own records sees what DuckDB's running windows give.

Each record meets its group as it is with that very record, whatever the batches are: with replays,
crashes and several tasks. A case is a seed, as in `test_against_oracle`.
"""

# pyright: basic

import json
from dataclasses import dataclass
from typing import Any

import duckdb
import pytest

from tests.property.dice import Dice
from tests.property.executor import How
from tests.property.one_topic import OneTopic
from tests.property.seeds import blocks, many
from tests.property.test_twin import COLUMNS, drawn_records
from tests.reference.records import Record

pytestmark = pytest.mark.slow

FAST, MANY = 20, 160
SCHEMA = {**COLUMNS, "n": "BIGINT"}
CALLS = (
    "count(*)", "count(v)", "sum(v)", "avg(v)", "min(v)", "max(k)", "median(v)",
    "count(DISTINCT v)", "sum(v) FILTER (WHERE w > 1)", "bool_or(v > 4)",
)  # fmt: skip


@dataclass(frozen=True, kw_only=True)
class Running:
    """A query of running groups."""

    keys: tuple[str, ...]
    calls: tuple[str, ...]
    counted: str | None
    """Which records the groups take."""
    having: str | None
    driving: str | None
    """Which records look them up."""


def draw(dice: Dice) -> Running:
    """Choose a query."""
    return Running(
        keys=tuple(dice.some(["k", "g", "w"], 2)) or ("k",),
        calls=tuple(dice.some(CALLS, 3)) or ("count(*)",),
        counted=dice.pick([None, None, "v > 1"]),
        having=dice.pick([None, None, "count(*) > 2", "sum(v) > 3"]),
        driving=dice.pick([None, None, "w > 1"]),
    )


def pipeline(running: Running) -> dict[str, Any]:
    """Write the pipeline."""
    keys, calls = range(len(running.keys)), range(len(running.calls))
    named = [f"{key} AS k{i}" for i, key in enumerate(running.keys)]
    named += [f"{call} AS c{i}" for i, call in enumerate(running.calls)]
    groups = (
        f"SELECT {', '.join(named)} FROM t"
        + (f" WHERE {running.counted}" if running.counted else "")
        + f" GROUP BY {', '.join(f'k{i}' for i in keys)}"
        + (f" HAVING {running.having}" if running.having else "")
    )
    on = " AND ".join(f"t.{running.keys[i]} = r.k{i}" for i in keys)
    shown = ", ".join(["t.n", *(f"r.c{i}" for i in calls)])
    where = f" WHERE {running.driving}" if running.driving else ""
    return {
        "name": "running",
        "relations": {"r": {"query": groups}},
        "query": f"SELECT {shown} FROM t LEFT JOIN r ON {on}{where}",
        "output": {"topic": "out", "key": "n"},
        "topics": {"t": {"columns": SCHEMA, "lateness": "1h"}},
        "partitions": 2,
    }


def expected(running: Running, records: list[Record]) -> list[dict[str, Any]]:
    """Ask DuckDB over all records at once."""
    known = " AND ".join(f"{key} IS NOT NULL" for key in running.keys)
    over = (
        f"OVER (PARTITION BY {', '.join(running.keys)} ORDER BY n "
        "ROWS BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW)"
    )
    counted = running.counted or "true"

    def along(call: str) -> str:
        if " FILTER (WHERE " in call:
            return call.replace(" FILTER (WHERE ", f" FILTER (WHERE {counted} AND ") + f" {over}"
        return f"{call} FILTER (WHERE {counted}) {over}"

    having = "true"
    if running.having:
        call, _, rest = running.having.partition(" > ")
        having = f"{along(call)} > {rest}"
    found = f"{known} AND {along('count(*)')} > 0 AND {having}"
    calls = [f"CASE WHEN {found} THEN {along(c)} END AS c{i}" for i, c in enumerate(running.calls)]
    sql = f"SELECT n, w, {', '.join(calls)} FROM records"
    with duckdb.connect() as connection:
        columns = ", ".join(f'"{name}" {kind}' for name, kind in SCHEMA.items())
        connection.execute(f"CREATE TABLE records ({columns})")
        for record in records:
            assert record.value is not None
            places = ", ".join("?" * len(SCHEMA))
            values = [record.value.get(name) for name in SCHEMA]
            connection.execute(f"INSERT INTO records VALUES ({places})", values)
        only = f"SELECT * EXCLUDE (w) FROM ({sql}) WHERE {running.driving or 'true'} ORDER BY n"
        rows = connection.sql(f"SELECT to_json(r) FROM ({only}) r").fetchall()
    return [json.loads(row) for (row,) in rows]


def actual(running: Running, records: list[Record], dice: Dice, how: How) -> list[dict[str, Any]]:
    """Run the engine; return its rows in the order of the records."""
    run = OneTopic(pipeline(running), SCHEMA, how)
    run.take(records, dice, 8)
    return sorted((json.loads(row["value"]) for row in run.rows), key=lambda row: row["n"])


def check(seed: int) -> None:
    """Compare the two."""
    dice = Dice(f"lookups {seed}")
    running, records = draw(dice), drawn_records(dice, dice.number(1, 25))
    got = actual(running, records, dice, How.of(f"lookups {seed}"))
    assert got == expected(running, records), f"seed {seed}: {pipeline(running)}"


@pytest.mark.parametrize("seeds", blocks(0, FAST), ids=str)
def test_equals_running_windows(seeds: range) -> None:
    for seed in seeds:
        check(seed)


@pytest.mark.property
@pytest.mark.parametrize("seeds", many(FAST, MANY), ids=str)
def test_many_equal_running_windows(seeds: range) -> None:
    for seed in seeds:
        check(seed)
