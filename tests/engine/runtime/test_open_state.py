"""A state whose plan an earlier version stored is opened, and goes on under the same names."""

from dataclasses import replace

import pytest

from kaflow_engine.connectors.kafka.client import KafkaSettings
from kaflow_engine.connectors.kafka.clusters import input_topics
from kaflow_engine.errors import StateError
from kaflow_engine.flow.graph import state_names
from kaflow_engine.plan.evolution.diff import change
from kaflow_engine.runtime.planning.plan_codec import fingerprint, plan_of, plan_text
from kaflow_engine.runtime.source import inputs
from kaflow_engine.runtime.takeover import open_state as opening
from kaflow_engine.state.log.batch_log import BatchLog, StateRecord, plan_mark
from kaflow_engine.state.storage.store import LocalStore
from tests.engine.flow.stored_plans import NAMES, stored_plan
from tests.engine.plan.test_numbering import plan_with

NOWHERE = input_topics.InputTopics.all_in(KafkaSettings(()))


@pytest.fixture(autouse=True)
def topics(monkeypatch):
    monkeypatch.setattr(input_topics, "require", lambda kafka, names, **_: dict.fromkeys(names, 1))


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
    return opening.open_state(log, flow, inputs.Inputs(NOWHERE), lambda counts: none_added, change)


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


def test_topics_of_a_chain_that_is_gone_are_read_no_more_and_begin_again_with_a_new_one(tmp_path):
    both, alone = (
        plan_with({"o": "SELECT e.id FROM events e", **more})
        for more in ({"q": "SELECT c.id FROM clicks c LEFT JOIN names d ON c.id = d.id"}, {})
    )
    log = BatchLog(LocalStore(tmp_path))
    first = StateRecord(
        state_id="s",
        generation=1,
        partitions=both.partitions,
        created_ms=0,
        start={"events": {0: 1}, "clicks": {0: 2}, "names": {0: 3}},
        dimension_ends={"names": {0: 9}},
        schemas={"events": {"id": "VARCHAR"}, "clicks": {}, "names": {}},
        fingerprint=fingerprint(both),
        topic_ids={"events": "E", "clicks": "C", "names": "N"},
    )
    log.save_plan(first.fingerprint, plan_text(both))
    log.create_state(first)

    def begins(counts):
        at = {topic: {0: 100} for topic in counts}
        dimensions = {topic: {0: 200} for topic in counts if topic == "names"}
        return replace(first, start=at, dimension_ends=dimensions, topic_ids={})

    state, _ = opening.open_state(log, alone, inputs.Inputs(NOWHERE), begins, change)
    assert (state.start, state.dimension_ends) == ({"events": {0: 1}}, {})
    assert (state.topic_ids, list(state.schemas)) == ({"events": "E"}, ["events"])
    state, plan = opening.open_state(log, both, inputs.Inputs(NOWHERE), begins, change)
    assert state.start == {"events": {0: 1}, "clicks": {0: 100}, "names": {0: 100}}
    assert state.dimension_ends == {"names": {0: 200}}
    assert state.added_behind == {"clicks": 0, "names": 0}
    assert state_names(plan) == (2001,)
