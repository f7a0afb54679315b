"""Runs of rows: what the state holds of them, and for how long."""

# pyright: basic

import json
from dataclasses import replace

import pytest

from kaflow_engine.errors import Location
from kaflow_engine.flow.timed import Runs
from kaflow_engine.model.columns import Column
from kaflow_engine.model.config import Config
from kaflow_engine.model.pipelines.loader import pipeline_from_mapping
from kaflow_engine.operators.inspect.state_rows import decode
from kaflow_engine.operators.inspect.state_sides import chosen_sides, describe, operator_called
from kaflow_engine.operators.row_errors.dead_letters import RecordRefused
from kaflow_engine.operators.runs.kept_rows import NEVER, Head, KeptRow, read_head, read_row
from kaflow_engine.plan.evolution.timed import runs_of
from kaflow_engine.plan.planner.pipeline_plan import build_plan
from kaflow_engine.testing.local.executor import LocalPipeline
from tests.engine.operators.written import count_entries, letter_of
from tests.property.executor import _table
from tests.reference.records import Record

T0 = 1_767_225_600_000
COLUMNS = {"t": (Column("k", "VARCHAR"), Column("v", "VARCHAR"))}


def plan_with(batch, query="SELECT string_agg(k, '') AS ks FROM batch", **topic):
    author = {
        "name": "p",
        "relations": {"r": {"from": "t", "batch": batch, "query": query}},
        "query": "SELECT * FROM r",
        "output": {"topic": "o"},
        "topics": {"t": topic},
    }
    return build_plan(pipeline_from_mapping(author, Location("p.yaml")), Config(), COLUMNS).plan


class Run:
    """A pipeline over one topic of texts, each a key and a value."""

    def __init__(self, plan):
        self.plan, self.offset = plan, 0
        self.pipeline = LocalPipeline(plan, {"t": range(1)}, replay=True)

    def at(self, second, texts=""):
        """Take a record for each letter at a batch time; returns what leaves."""
        ts = T0 + second * 1000
        records = [
            Record(topic="t", offset=self.offset + n, ts=ts, value={"k": k, "v": k})
            for n, k in enumerate(texts)
        ]
        self.offset += len(records)
        return self.pipeline.run(_table(records), ts).output.to_pylist()

    def made(self, second, texts=""):
        return [next(iter(json.loads(row["value"]).values())) for row in self.at(second, texts)]

    @property
    def entries(self):
        return count_entries(self.plan, self.pipeline, Runs)


@pytest.mark.parametrize(
    "row",
    [
        KeptRow('["a",null]', None, 5, (1, 2, 3, 4), ()),
        KeptRow("[]", '{"k":null}', -5, (1, 2, -1, -1), (7, 8)),
    ],
)
def test_a_row_is_read_as_it_was_written(row):
    assert read_row(row.encoded()) == row


def test_what_there_is_of_a_run_is_read_as_it_was_written():
    for head in (Head(NEVER, 0, 1), Head(-5, 1 << 40, 999_999)):
        assert read_head(head.encoded()) == head


def test_a_run_that_is_full_leaves_nothing():
    run = Run(plan_with({"size": 3, "every": "10s"}))
    assert run.made(0, "ab") == []
    assert run.entries == 4  # two rows, what there is of the run, and when it is due
    assert run.made(1, "cdefgh") == ["abc", "def"]
    assert run.entries == 4
    assert run.made(10, "i") == ["ghi"]
    assert run.entries == 0


def test_a_run_that_is_due_has_none_of_the_records_of_its_batch():
    run = Run(plan_with({"size": 3, "every": "10s"}))
    assert run.made(0, "ab") == []
    assert run.made(9) == []
    assert run.made(10, "cd") == ["ab"]
    assert run.made(19) == []
    assert run.made(20) == ["cd"]
    assert run.entries == 0


def test_a_run_without_every_waits_until_it_is_full():
    run = Run(plan_with({"size": 3}))
    assert run.made(0, "ab") == []
    assert run.made(1_000_000) == []
    assert run.made(1_000_001, "c") == ["abc"]
    assert run.entries == 0


def test_the_rows_of_a_result_stay_in_its_order_behind_the_greatest_time():
    run = Run(plan_with({"size": 3}, "SELECT k FROM batch ORDER BY k DESC"))
    run.at(0, "a")
    rows = run.at(5, "bc")
    assert [json.loads(row["value"])["k"] for row in rows] == ["c", "b", "a"]
    assert {row["timestamp"] for row in rows} == {T0 + 5000}


@pytest.mark.parametrize("on_error", ["dead_letter", "skip", "fail"])
def test_a_row_that_fails_alone_is_treated_as_its_topic_says(on_error):
    plan = plan_with({"size": 3}, "SELECT sum(v::INTEGER) AS s FROM batch", on_error=on_error)
    run = Run(plan)
    run.at(0, "1x")
    if on_error == "fail":
        with pytest.raises(RecordRefused, match="partition 0, offset 1: sql: Could not convert"):
            run.at(1, "2")
        return
    rows = run.at(1, "2")
    letters = [letter_of(row) for row in rows if row["kind"]]
    assert [json.loads(row["value"]) for row in rows if not row["kind"]] == [{"s": 3}]
    assert [(phase, json.loads(value)) for phase, _, value in letters] == (
        [("sql", {"k": "x", "v": "x"})] if on_error == "dead_letter" else []
    )
    assert run.pipeline.counters["failed_results"] == 1


TOGETHER = [
    "SELECT k, count(*) AS n FROM batch GROUP BY k ORDER BY n DESC, k",
    "SELECT k, count(*) AS n FROM batch GROUP BY k",
    "SELECT count(*) AS n, string_agg(k, '') AS ks, first(v) AS f FROM batch",
    "SELECT k, max(v) AS m FROM batch WHERE k <> 'b' GROUP BY ALL HAVING count(*) > 1",
    "SELECT upper(b.k) AS u, v FROM batch b ORDER BY 1 DESC",
    "SELECT k = 'a' AS a, list(v ORDER BY v DESC) AS vs FROM batch GROUP BY 1 ORDER BY a DESC",
]
ONE_BY_ONE = [
    "SELECT * FROM batch ORDER BY k",
    "SELECT k FROM batch ORDER BY k LIMIT 2",
    "SELECT count(*) AS n FROM batch WHERE k = 'a'",
    "SELECT DISTINCT k FROM batch",
    "SELECT k, row_number() OVER (ORDER BY v) AS n FROM batch",
    "SELECT k FROM batch WHERE v = (SELECT max(v) FROM batch)",
    "SELECT k, count(*) AS n FROM batch GROUP BY ROLLUP (k)",
    "SELECT batch AS whole FROM batch ORDER BY k",
    "SELECT unnest([k, v]) AS x FROM batch ORDER BY v",
    "SELECT a.k FROM batch a JOIN batch b ON a.k = b.v ORDER BY a.k",
    "SELECT count(*) AS n FROM batch UNION ALL SELECT 1",
]


@pytest.mark.parametrize("query", TOGETHER)
def test_runs_that_are_asked_together_make_what_each_makes(query):
    plan = plan_with({"size": 3}, query)
    (runs,) = runs_of(plan)
    alone = replace(
        plan,
        operators=tuple(
            replace(each, together=None) if each == runs else each for each in plan.operators
        ),
    )
    assert runs.together is not None
    texts = ["a", "bcabbabaca", "cc"]
    found = [[Run(each).at(0, some) for some in texts] for each in (plan, alone)]
    assert found[0] == found[1]


@pytest.mark.parametrize("query", ONE_BY_ONE)
def test_runs_whose_rows_would_be_compared_with_those_of_others_are_asked_one_by_one(query):
    (runs,) = runs_of(plan_with({"size": 3}, query))
    assert runs.together is None


def test_a_row_that_fails_takes_no_other_run_with_it():
    plan = plan_with({"size": 2}, "SELECT sum(v::INTEGER) AS s FROM batch", on_error="dead_letter")
    rows = Run(plan).at(0, "12x345")
    letters = [letter_of(row) for row in rows if row["kind"]]
    assert [json.loads(row["value"])["s"] for row in rows if not row["kind"]] == [3, 3, 9]
    assert [json.loads(value) for _, _, value in letters] == [{"k": "x", "v": "x"}]


def test_a_row_that_came_before_dead_letters_were_wanted_has_none_of_its_own():
    query = "SELECT sum(v::INTEGER) AS s FROM batch"
    run = Run(plan_with({"size": 2}, query, on_error="fail"))
    run.at(0, "x")
    run.pipeline.go_on(plan_with({"size": 2}, query, on_error="dead_letter"))
    rows = run.at(1, "2")
    assert [json.loads(row["value"]) for row in rows if not row["kind"]] == [{"s": 2}]
    assert [letter_of(row)[0] for row in rows if row["kind"]] == ["sql"]


def test_another_query_over_fewer_rows_goes_on_with_those_that_wait():
    run = Run(plan_with({"size": 9}))
    run.at(0, "abc")
    run.pipeline.go_on(plan_with({"size": 2}, "SELECT count(*) AS n FROM batch"))
    assert run.made(1, "d") == [4]
    assert run.made(2, "efg") == [2]


def test_the_state_shows_rows_that_wait_and_when_they_are_due():
    plan = plan_with({"size": 3, "every": "10s"})
    (runs,) = runs_of(plan)
    rows, heads = chosen_sides(plan, runs.state)
    assert operator_called(runs.state, plan) == "runs:p"
    assert describe(rows, plan) == "rows of unfinished runs"
    assert describe(heads, plan) == "when unfinished runs are due"
    run = Run(plan)
    run.at(0, "ab")
    run.at(1)
    states = [run.pipeline._world.state((runs.state, p)) for p in range(plan.partitions)]
    found = [state.range(b"\0", None) for state in states]
    pairs = [(k, v) for each in found for k, v in zip(each.keys, each.values, strict=True)]
    shown = []
    for side in (rows, heads):
        some = [(key, value) for key, value in pairs if key[1] == side.byte]
        shown.append(decode(plan, side, *map(list, zip(*some, strict=True))).rows.to_pylist())
    assert [row["packed"] for row in shown[0]] == ['["a","a"]', '["b","b"]']
    assert [(row["due"], row["waiting"]) for row in shown[1]] == [(T0 + 10_000, 2)]
