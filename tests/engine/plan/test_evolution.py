"""What a change of a file does with the state that is there, and why."""

from pathlib import Path

import pytest

from kaflow_engine.plan.evolution.evolution import inherit
from kaflow_engine.plan.evolution.start_decision import StoredState, judge
from kaflow_engine.state.log.batch_log import StateRecord
from tests.engine.plan.evolution import CHANGES, Change, plan_of

STORED = StoredState(
    directory=Path("p"),
    state=StateRecord(
        state_id="s",
        generation=1,
        partitions=2,
        created_ms=0,
        start={},
        dimension_ends={},
        schemas={},
        fingerprint="f",
    ),
    committed=4,
)


@pytest.mark.parametrize("change", CHANGES, ids=[change.title for change in CHANGES])
def test_the_status_and_the_reason(change: Change) -> None:
    old = plan_of(change, after=False)
    found = judge(STORED, old, inherit(old, plan_of(change, after=True)))
    assert (found.status, found.batch) == (
        change.status,
        None if change.status == "rebuild" else 5,
    ), found.reasons
    assert change.reason in found.reasons or (not change.reason and not found.reasons), found


@pytest.mark.parametrize("change", CHANGES, ids=[change.title for change in CHANGES])
def test_a_plan_that_has_inherited_a_state_inherits_it_again(change: Change) -> None:
    old, new = plan_of(change, after=False), plan_of(change, after=True)
    once = inherit(old, new)
    assert inherit(once, new) == once
