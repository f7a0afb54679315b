"""Runs of rows are those of the reference, in any batches, with replays, crashes and several tasks.

A case is a seed, as in `test_against_oracle`.
"""

# pyright: basic

import json
from typing import Any

import pytest

from kaflow_engine.errors import Location
from kaflow_engine.model.columns import Column
from kaflow_engine.model.config import Config
from kaflow_engine.model.pipelines.loader import pipeline_from_mapping
from kaflow_engine.plan.planner.pipeline_plan import build_plan
from kaflow_engine.testing.local.executor import LocalPipeline
from tests.property.dice import Dice
from tests.property.executor import How, _dead_letters, _table, crashes
from tests.property.seeds import blocks, many
from tests.reference.records import Batch, Record
from tests.reference.runs import Runs

pytestmark = pytest.mark.slow

FAST, MANY = 10, 170
T0 = 1_767_225_600_000
COLUMNS = {"p": "INTEGER", "k": "VARCHAR", "v": "INTEGER", "s": "VARCHAR"}
QUERIES = (
    "SELECT min(p) AS p, count(*) AS n, sum(v) AS total FROM batch",
    "SELECT min(p) AS p, k, sum(v) AS total, list(v) AS vs FROM batch GROUP BY k ORDER BY k DESC",
    "SELECT *, row_number() OVER () AS place FROM batch",
    "SELECT p, k, v, lag(v) OVER (ORDER BY v, k, s) AS before FROM batch ORDER BY v, k, s",
    "SELECT DISTINCT p, k FROM batch ORDER BY ALL",
    "WITH best AS (SELECT max(v) AS v FROM batch) SELECT b.* FROM batch b JOIN best USING (v)",
    "SELECT p, k, v FROM batch ORDER BY v DESC NULLS LAST, k, s LIMIT 2",
    "SELECT p, k FROM batch WHERE v > 1 UNION ALL SELECT p, s FROM batch WHERE v <= 1",
    "SELECT min(p) AS p, sum(s::INTEGER) AS total, string_agg(k, '') AS ks FROM batch",
    "SELECT min(p) AS p, sum(v * 60)::UTINYINT AS total FROM batch -- too great, sometimes",
    "SELECT p, unnest([k, s]) AS each FROM batch",
    "FROM batch SELECT p, v, (SELECT count(*) FROM batch) AS among WHERE v IS NOT NULL",
)


def pipeline(dice: Dice) -> dict[str, Any]:
    """Choose a pipeline."""
    every = dice.pick([None, "1s", "5s", "30s"])
    batch: dict[str, Any] = {"size": dice.pick([1, 2, 3, 5, 20])}
    if every is not None:
        batch["every"] = every
    if dice.one_in(3):
        batch["per"] = "partition"
    return {
        "name": "random",
        "relations": {"runs": {"from": "t", "batch": batch, "query": dice.pick(QUERIES)}},
        "query": "SELECT * FROM runs",
        "output": {"topic": "out", "format": "json"},
        "topics": {"t": {"columns": COLUMNS}},
        "partitions": 2,
    }


def batches(dice: Dice) -> list[Batch]:
    """Choose records of two partitions, and batch times that go on."""
    made: list[Batch] = []
    offsets, now = [0, 0], 0
    for _ in range(dice.number(1, 6)):
        now += dice.pick([0, 1, 1, 4, 30])
        records: list[Record] = []
        for _ in range(dice.pick([0, 1, 2, 3, 5, 8, 13])):
            part = dice.pick([0, 0, 1])
            value = {
                "p": part,
                "k": dice.pick(["a", "b", None]),
                "v": dice.pick([0, 1, 2, 3, None]),
                "s": dice.pick(["1", "2", "x"] if dice.one_in(4) else ["1", "2", None]),
            }
            ts = T0 + (now + dice.pick([0, 0, 1, -3])) * 1000
            records.append(
                Record(topic="t", partition=part, offset=offsets[part], ts=ts, value=value)
            )
            offsets[part] += 1
        made.append(Batch(time=T0 + now * 1000, records=tuple(records)))
    return [*made, Batch(time=T0 + now * 1000, last=True)]


def check(seed: int) -> None:
    """Compare the two."""
    dice, how = Dice(f"runs {seed}"), How.of(f"runs {seed}")
    author = pipeline(dice)
    (relation,) = author["relations"].values()
    said = relation["batch"]
    every = said.get("every")
    runs = Runs(
        size=said["size"],
        every=None if every is None else int(every[:-1]) * 1000,
        per_partition="per" in said,
        columns=COLUMNS,
        sql=relation["query"],
    )
    schema = {"t": tuple(Column(name, kind) for name, kind in COLUMNS.items())}
    plan = build_plan(pipeline_from_mapping(author, Location("<runs>")), Config(), schema).plan
    engine = LocalPipeline(
        plan, {"t": range(2)}, spread=how.spread, replay=how.replay, point=crashes(how.crashes)
    )
    for number, batch in enumerate(batches(dice)):
        want = runs.run(batch)
        ran = (
            engine.end(batch.time) if batch.last else engine.run(_table(batch.records), batch.time)
        )
        output = ran.output.to_pylist()
        rows = [json.loads(row["value"]) for row in output if row["kind"] == 0]
        got = {key: [r for r in rows if not runs.per_partition or r["p"] == key] for key in (0, 1)}
        for key in (0, 1):
            shown = got[key] if runs.per_partition or key == 0 else []
            assert shown == want.get(key, []), f"seed {seed}, batch {number}: {author}"
        letters = _dead_letters(output)
        failed = sorted((x[1], x[2]) for x in letters if x[3] == "sql")
        assert failed == sorted(runs.dead), f"seed {seed}, batch {number}: {author}"
        assert sum(x[3] == "result" for x in letters) == runs.broken
        runs.dead, runs.broken = [], 0


@pytest.mark.parametrize("seeds", blocks(0, FAST), ids=str)
def test_are_those_of_the_reference(seeds: range) -> None:
    for seed in seeds:
        check(seed)


@pytest.mark.property
@pytest.mark.parametrize("seeds", many(FAST, MANY), ids=str)
def test_many_are_those_of_the_reference(seeds: range) -> None:
    for seed in seeds:
        check(seed)
