"""Dynamic tables answer as sets in Python do, whatever the cut into batches and tasks, and wherever
a batch is killed."""

import json
from pathlib import Path
from random import Random
from typing import Any

import pyarrow as pa
import pytest

from kaflow_engine.errors import Location
from kaflow_engine.flow.records import RECORDS
from kaflow_engine.model.config import Config
from kaflow_engine.model.pipelines.loader import pipeline_from_mapping
from kaflow_engine.plan.planner.pipeline_plan import build_plan, declared_columns
from kaflow_engine.testing.cases.cases import run_case
from kaflow_engine.testing.cases.cuts import Cuts
from kaflow_engine.testing.cases.executor import LocalExecutor
from kaflow_engine.testing.cases.files import load_cases
from kaflow_engine.testing.cases.pipeline import Surroundings
from kaflow_engine.testing.cases.report import report_lines
from kaflow_engine.testing.local.executor import LocalPipeline
from kaflow_engine.testing.local.world import Crashed

pytestmark = pytest.mark.slow

QUERY = """
SELECT n, dynamic_table_check('seen', a) AS seen, dynamic_table_check('held', b) AS held,
       dynamic_table_check('held', a) AS of_a
FROM t WHERE NOT dynamic_table_check('seen', b) OR dynamic_table_check('seen', b) IS NULL
"""
PIPELINE = {
    "name": "p",
    "relations": {
        "seen": {"type": "dynamic_table", "from": "t", "key": "a"},
        "held": {"type": "dynamic_table", "from": "things", "key": "v"},
    },
    "query": QUERY,
    "output": {"topic": "out", "key": "n"},
    "topics": {"things": {"table": True, "primary_key": ["id"]}},
}
TOPICS = {
    "t": {"n": "VARCHAR", "a": "INTEGER", "b": "BIGINT"},
    "things": {"id": "VARCHAR", "v": "INTEGER"},
}


def asked(value: int | None, values: set[int]) -> bool | None:
    return None if value is None else value in values


def made_up(random: Random) -> dict[str, Any]:
    """Return a case, whose expected rows sets in Python have said."""
    given: list[dict[str, Any] | str] = []
    expected: list[dict[str, Any]] = []
    seen: set[int] = set()
    held: dict[str, int | None] = {}
    for n in range(40):
        at = f"2026-01-01T00:{n:02}:00Z"
        if n in (11, 27):
            given.append("batch")
        if random.random() < 0.4:
            key, v = random.choice("xyz"), random.choice([0, 1, 2, 3, None])
            is_gone = random.random() < 0.3
            value = None if is_gone else {"id": key, "v": v}
            given.append({"topic": "things", "at": at, "key": key, "value": value})
            held[key] = None if is_gone else v
            continue
        a, b = random.choice([*range(8), None]), random.choice([*range(8), None])
        given.append({"topic": "t", "at": at, "value": {"n": f"{n}", "a": a, "b": b}})
        there = {v for v in held.values() if v is not None}
        answers = {"seen": asked(a, seen), "held": asked(b, there), "of_a": asked(a, there)}
        if b not in seen:
            expected.append({"key": f"{n}", "value": {"n": f"{n}", **answers}})
        seen |= set() if a is None else {a}
    return {
        "case": "made up",
        "pipeline": PIPELINE,
        "topics": TOPICS,
        "given": given,
        "expect": expected,
        "expect_dead_letters": [],
    }


@pytest.mark.parametrize("seed", range(4))
def test_answers_are_those_of_sets(tmp_path: Path, seed: int) -> None:
    file = tmp_path / "cases.yaml"
    file.write_text(json.dumps([made_up(Random(seed))]))
    (case,) = load_cases(file, {})
    cuts = Cuts.of("all" if seed == 1 else "given")
    executor, around = LocalExecutor(spread=seed == 2), Surroundings(variables={})
    result = run_case(case, executor, cuts=cuts, replay=seed == 3, around=around)
    assert result.passed, "\n".join(report_lines(result))


FIRST = {
    "name": "first",
    "relations": {"seen": {"type": "dynamic_table", "from": "visits", "key": "user"}},
    "query": "SELECT n, user FROM visits WHERE NOT dynamic_table_check('seen', user)",
    "output": {"topic": "out"},
    "topics": {"visits": {"columns": {"n": "INTEGER", "user": "INTEGER"}}},
}
START = 1_767_225_600_000


@pytest.mark.parametrize("spread", [False, True])
def test_each_first_one_passes_once_wherever_a_batch_is_killed(spread: bool) -> None:
    spec = pipeline_from_mapping(FIRST, Location("p.yaml"))
    plan = build_plan(spec, Config(), {"visits": declared_columns(spec, "visits") or ()}).plan
    killed: set[tuple[int, str, str]] = set()

    def kill_once(when: str, step: str) -> None:
        place = (batch, when, step)
        if place not in killed:
            killed.add(place)
            raise Crashed

    pipeline = LocalPipeline(plan, {"visits": range(2)}, spread=spread, point=kill_once)
    first: list[int] = []
    for batch in range(3):
        numbers = range(batch * 20, batch * 20 + 20)
        done = pipeline.run(records(numbers), START + numbers.stop)
        first += [json.loads(row["value"])["n"] for row in done.output.to_pylist()]
    assert len(killed) >= 20
    assert sorted(first) == list(range(25))


def records(numbers: range) -> pa.Table:
    """Return visits of 25 users, who come again and again."""
    rows = [
        {
            "topic": "visits",
            "partition": n % 2,
            "offset": n // 2,
            "timestamp": START + n,
            "key": None,
            "value": json.dumps({"n": n, "user": n % 25}).encode(),
            "headers": [],
        }
        for n in sorted(numbers, key=lambda n: n % 2)
    ]
    return pa.Table.from_pylist(rows, schema=RECORDS)
