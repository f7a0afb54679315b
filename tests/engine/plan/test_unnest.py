"""Plans of pipelines that unnest lists."""

from typing import Any

from kaflow_engine.errors import Location
from kaflow_engine.flow.chains.chain import chains
from kaflow_engine.flow.flow import Flow
from kaflow_engine.flow.graph import joins, projections
from kaflow_engine.flow.operators import Unnest
from kaflow_engine.model.columns import Column
from kaflow_engine.model.config import Config
from kaflow_engine.model.pipelines.loader import pipeline_from_mapping
from kaflow_engine.plan.evolution.chain import document_mark
from kaflow_engine.plan.planner.pipeline_plan import build_plan
from kaflow_engine.runtime.planning.plan_codec import plan_of, plan_text

A = (Column("id", "VARCHAR"), Column("xs", "INTEGER[]"), Column("n", "INTEGER"))
B = (Column("id", "VARCHAR"), Column("ys", "INTEGER[][]"), Column("k", "VARCHAR"))


def plan(query: str, **keys: Any) -> Flow:
    raw: dict[str, Any] = {"name": "p", "query": query, "output": {"topic": "out", "key": "id"}}
    raw = {"name": "p", **keys} if "outputs" in keys else {**raw, **keys}
    spec = pipeline_from_mapping(raw, Location("p.yaml", 1))
    return build_plan(spec, Config(), {"a": A, "b": B}).plan


JOINED = "SELECT a.id, x, z FROM a LEFT JOIN b ON a.id = b.id"


def test_conditions_are_asked_before_the_first_list_that_they_do_not_need() -> None:
    flow = plan(
        f"{JOINED}, unnest(b.ys) AS u(y), unnest(a.xs) AS v(x), unnest(y) AS w(z) "
        "WHERE a.n > 1 AND a.n < len(b.ys) AND len(y) > 2 AND x > 3 AND z > 4 AND x < z"
    )
    assert chains(flow)[0].driving.filter == '("a.n" > 1)'
    (project,) = projections(flow)
    assert project.unnests == (
        Unnest(where='("a.n" < LENGTH("b.ys"))', lists=(("u.y", '"b.ys"'),)),
        Unnest(where='(LENGTH("u.y") > 2)', lists=(("v.x", '"a.xs"'),)),
        Unnest(where='("v.x" > 3)', lists=(("w.z", '"u.y"'),)),
    )
    assert project.where == '("w.z" > 4) AND ("v.x" < "w.z")'
    (join,) = joins(flow)
    assert [column.name for column in join.before] == ["a.id", "a.n", "a.xs"]
    assert [column.name for column in join.sides[0].columns] == ["ys"]


def test_a_flow_with_lists_comes_back_from_its_text() -> None:
    flow = plan("SELECT id, unnest(xs) AS x FROM a")
    assert plan_of(plan_text(flow)) == flow
    assert document_mark(flow) != document_mark(plan("SELECT id, n AS x FROM a"))


def test_rows_wait_for_the_list_of_a_joined_side_that_the_key_is_made_of() -> None:
    query = f"{JOINED}, unnest(b.ys) AS u(y), unnest(y) AS w(z), unnest(a.xs) AS v(x)"
    smart: dict[str, Any] = {"emission": {"type": "smart"}, "state": {"dimensions": ["b"]}}
    by_side = plan(query, output={"topic": "out", "key": "z"}, **smart)
    assert [join.require for join in joins(by_side)] == ['("b.ys") IS NOT NULL']
    assert chains(by_side)[0].driving.raw == "TRUE"  # an element may be NULL, and is no key then
    by_record = plan(query, output={"topic": "out", "key": "x"}, **smart)
    assert [join.require for join in joins(by_record)] == [None]
    assert chains(by_record)[0].driving.needs is None


def test_a_ledger_settles_rows_of_a_record_some_of_whose_lists_may_be_empty() -> None:
    chain = "FROM a LEFT JOIN b ON a.id = b.id LEFT JOIN b c ON b.k = c.k"
    (plain,) = chains(plan(f"SELECT a.id {chain}"))
    assert plain.ledger is None
    (with_list,) = chains(plan(f"SELECT a.id {chain}, unnest(a.xs) AS u(x)"))
    assert with_list.ledger is not None


def test_outputs_may_call_elements_of_other_types_the_same() -> None:
    relation = {"query": f"{JOINED.replace('x, z', 'a.xs, b.ys, a.id AS k')}"}
    flow = plan(
        "",
        relations={"r": relation},
        outputs=[
            {"query": "SELECT id, x FROM r, unnest(xs) AS u(x) WHERE x > 1", "topic": "first"},
            {"query": "SELECT id FROM r, unnest(ys) AS u(x) WHERE x <> [1]", "topic": "second"},
            {"query": "SELECT id FROM r, unnest([k]) AS u(x) WHERE x <> 'b'", "topic": "third"},
        ],
    )
    wheres = [project.where for project in projections(flow)]
    assert wheres == ['("u.x" > 1)', '("u.x" <> [1])', "(\"u.x\" <> 'b')"]
