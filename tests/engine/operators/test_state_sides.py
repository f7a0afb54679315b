"""What states of pipelines with several chains are called, and by what they are read."""

from kaflow_engine.flow.chains.chain import chains
from kaflow_engine.flow.fingerprints import state_fingerprint
from kaflow_engine.flow.flow import Flow
from kaflow_engine.flow.graph import operator_of_state, state_names
from kaflow_engine.flow.numbers import renumbered
from kaflow_engine.operators.inspect.state_sides import (
    chosen_sides,
    describe,
    driving_behind,
    operator_called,
)
from tests.engine.plan.evolution import Change, plan_of
from tests.engine.plan.test_numbering import plan_with

FIRST = "SELECT e.id, d.name FROM events e LEFT JOIN names d ON e.id = d.id"
PARTS = (
    "SELECT c.id FROM clicks c JOIN events e ON c.id = e.id JOIN names d ON e.other = d.id "
    "WHERE d.name <> 'x'"
)
BOTH = {"o": FIRST, "q": f"{FIRST} UNION ALL {PARTS.replace('c.id FROM', 'c.id, c.page FROM')}"}


def called(flow: Flow) -> dict[int, str]:
    return {state: operator_called(state, flow) for state in state_names(flow)}


def test_the_operators_of_one_chain_are_called_by_what_they_join() -> None:
    assert called(plan_with({"o": PARTS})) == {1: "join events", 2: "join names", 3: "ledger"}


def test_those_of_several_say_for_which_output_they_are() -> None:
    second = "for branch 2 of output 'q'"
    assert called(plan_with(BOTH)) == {
        1: "join names for output 'o' and branch 1 of output 'q'",
        1001: f"join events {second}",
        1002: f"join names {second}",
        1003: f"ledger {second}",
    }


def test_entries_are_of_the_driving_records_of_their_chain() -> None:
    flow = plan_with(BOTH)
    found = {
        (side.step, side.kind): describe(side, flow)
        for side in chosen_sides(flow)
        if side.kind in ("kept", "accounts")
    }
    assert found == {
        (1, "kept"): "records of 'events', kept for later matches",
        (1001, "kept"): "records of 'clicks', kept for later matches",
        (1002, "kept"): "records of 'clicks', kept for later matches",
        (1003, "accounts"): "what became of records of 'clicks'",
    }
    names = [
        (side.step, driving_behind(flow, side).alias) for side in chosen_sides(flow, None, "d")
    ]
    assert names == [(1, "e"), (1002, "c")]


def test_entries_of_every_join_of_rows_of_groups_are_of_these() -> None:
    hours = "SELECT id, count(*) AS n FROM clicks GROUP BY id, tumble(INTERVAL 1 HOUR)"
    query = (
        "SELECT h.id, h.n FROM hours h JOIN events e ON h.id = e.id JOIN places p ON e.other = p.id"
    )
    after: dict[str, object] = {"relations": {"hours": {"query": hours}}, "query": query}
    flow = plan_of(Change(title="", query="", after=after), after=True)
    kept = [describe(side, flow) for side in chosen_sides(flow) if side.kind == "kept"]
    assert kept == ["rows of 'aggregate:p.rows#1', kept for later matches"] * 2


def test_what_a_state_depends_on_is_in_its_own_chain() -> None:
    alone = plan_with({"q": PARTS})
    beside = plan_with({"o": FIRST, "q": PARTS})
    assert [chain.number for chain in chains(beside)] == [0, 1]
    for flow in (beside, renumbered(beside, {0: 5, 1: 0})):
        number = next(chain.number for chain in chains(flow) if chain.ledger is not None)
        for place in (1, 2, 3):
            mine = operator_of_state(flow, number * 1000 + place)
            theirs = operator_of_state(alone, place)
            assert state_fingerprint(flow, mine) == state_fingerprint(alone, theirs)
