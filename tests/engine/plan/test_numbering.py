"""Which number a chain has after a change of its file: rows of `evolution/numbers.yaml`."""

from typing import Any

import pytest

from kaflow_engine.flow.chains.chain import driving_of
from kaflow_engine.flow.flow import Flow
from kaflow_engine.flow.graph import inputs_of, operator_of, projects_of, state_names
from kaflow_engine.flow.numbers import renumbered
from kaflow_engine.flow.operators import KeyedJoin, Ledger, Project
from kaflow_engine.plan.evolution.diff import obstacles
from kaflow_engine.plan.evolution.evolution import inherit
from tests.engine.plan.evolution import Change, load_fixture, plan_of

ROWS = [pytest.param(row, id=row["title"]) for row in load_fixture("numbers.yaml")]


def plan_with(outputs: dict[str, str]) -> Flow:
    listed = [{"query": query, "topic": topic, "key": "id"} for topic, query in outputs.items()]
    one: dict[str, object] = {"query": None, "output": None, "outputs": listed}
    return plan_of(Change(title="", query="", after=one), after=True)


@pytest.mark.parametrize("row", ROWS)
def test_the_numbers_of_chains(row: dict[str, Any]) -> None:
    plan = plan_with(row["before"])
    for change in row["changes"]:
        later = plan_with(change["outputs"])
        plan = inherit(plan, later)
        found = {
            sink.target: [driving_of(plan, project).chain for project in projects_of(plan, sink)]
            for sink in plan.sinks
        }
        alone = {target: [number] for target, number in change.get("numbers", {}).items()}
        assert found == {**alone, **change.get("branches", {})}
        assert plan.retired == tuple(change.get("retired", ()))
        assert inherit(plan, later) == plan
        assert obstacles(plan, later) == ()


ENRICHED = (
    "SELECT e.id FROM events e JOIN clicks c ON e.id = c.id JOIN names d ON c.page = d.id "
    "WHERE c.page <> 'x'"
)


def test_operators_of_a_chain_are_called_by_its_number() -> None:
    plan = plan_with({"q": "SELECT p.id FROM places p", "o": ENRICHED})
    moved = renumbered(plan, {0: 7, 1: 0})
    assert state_names(plan) == (1001, 1002, 1003)
    assert state_names(moved) == (1, 2, 3)
    for name in ("join:1", "join:2", "ledger"):
        found = operator_of(moved, name)
        assert isinstance(found, KeyedJoin | Ledger)
        assert driving_of(moved, found).chain == 0
    other = operator_of(moved, "project:q")
    assert isinstance(other, Project)
    assert driving_of(moved, other).chain == 7
    names = {each.id for each in moved.operators}
    assert all(names.issuperset(inputs_of(node)) for node in (*moved.operators, *moved.sinks))


def test_numbers_that_are_taken_back_leave_the_same_flow() -> None:
    plan = plan_with({"q": "SELECT p.id FROM places p", "o": ENRICHED})
    assert renumbered(renumbered(plan, {0: 1, 1: 0}), {0: 1, 1: 0}) == plan
    assert renumbered(plan, {0: 0}) is plan
