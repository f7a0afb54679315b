"""A state whose plan an earlier version stored is opened, and goes on under the same names."""

from dataclasses import replace

import pytest

from kaflow_engine.errors import StateError
from kaflow_engine.flow.graph import state_names
from kaflow_engine.runtime.planning.plan_codec import fingerprint, plan_of
from kaflow_engine.runtime.takeover import open_state as opening
from kaflow_engine.state.log.batch_log import BatchLog, StateRecord, plan_mark
from kaflow_engine.state.storage.store import LocalStore
from tests.engine.flow.stored_plans import NAMES, stored_plan


@pytest.fixture(autouse=True)
def topics(monkeypatch):
    monkeypatch.setattr(opening, "require", lambda kafka, names: dict.fromkeys(names, 1))


def begun(folder, stored):
    """Create the state of a plan as an earlier version did."""
    log = BatchLog(LocalStore(folder))
    state = StateRecord(
        state_id="s",
        generation=1,
        partitions=stored.flow.partitions,
        created_ms=0,
        start={topic.name: {0: 0} for topic in stored.flow.sources},
        dimension_ends={},
        schemas={t.name: {c.name: c.type for c in t.columns} for t in stored.flow.sources},
        fingerprint=plan_mark(stored.text),
    )
    log.save_plan(state.fingerprint, stored.text)
    log.create_state(state)
    return log, state


def opened(log, state, flow, change=opening.refuse_change):
    none_added = replace(state, start={})
    return opening.open_state(log, flow, None, lambda counts: none_added, change)


@pytest.mark.parametrize("name", NAMES)
def test_a_state_goes_on(name, tmp_path):
    stored = stored_plan(name)
    log, before = begun(tmp_path, stored)
    after, flow = opened(log, before, stored.flow)
    assert flow == stored.flow
    assert after == replace(before, fingerprint=fingerprint(flow))
    assert plan_of(log.load_plan(after.fingerprint)) == flow
    assert plan_of(log.load_plan(before.fingerprint)) == flow  # of the batches that are logged
    assert state_names(flow) == tuple(
        range(1, 1 + len(stored.plan["steps"]) + stored.plan["ledger"])
    )


def test_a_state_of_other_joins_does_not(tmp_path):
    log, before = begun(tmp_path, stored_plan("look_up"))
    with pytest.raises(StateError, match="belongs to another version of it"):
        opened(log, before, replace(stored_plan("filter").flow, partitions=before.partitions))
