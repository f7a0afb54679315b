"""Columns of plans over a state: declared, pinned by it, or looked up once more."""

# pyright: basic

import pytest

from kaflow_engine.errors import Location
from kaflow_engine.flow.graph import columns_of
from kaflow_engine.model.columns import Column
from kaflow_engine.model.config import Config
from kaflow_engine.model.pipelines.loader import pipeline_from_mapping
from kaflow_engine.plan.evolution.start_decision import StoredState
from kaflow_engine.runtime.planning.plan_codec import plan_text
from kaflow_engine.runtime.planning.plan_with_state import plan_with_state
from kaflow_engine.state.log.batch_log import BatchLog, StateRecord, plan_mark
from kaflow_engine.state.storage.store import LocalStore

IN_TOPIC = (Column("id", "VARCHAR"), Column("_Key", "BIGINT"), Column("more", "VARCHAR"))


def spec(select, **more):
    data = {"name": "p", "query": f"SELECT {select} FROM t", "output": {"topic": "o"}, **more}
    return pipeline_from_mapping(data, Location("p.yaml", 1))


def state_of(plan, directory, schemas):
    text = plan_text(plan)
    BatchLog(LocalStore(directory)).save_plan(plan_mark(text), text)
    state = StateRecord(
        state_id="s",
        generation=1,
        partitions=1,
        created_ms=0,
        start={},
        dimension_ends={},
        schemas={"t": {column.name: column.type for column in schemas}},
        fingerprint=plan_mark(text),
    )
    return StoredState(directory=directory, state=state)


class Topics:
    """What is in the topic now, and which topics were looked at."""

    def __init__(self, *columns: Column):
        self.columns = columns or IN_TOPIC
        self.asked = []

    def __call__(self, topics):
        self.asked += topics
        return {topic: self.columns for topic in topics}


@pytest.mark.parametrize("knows", [True, False], ids=["connected", "from the state alone"])
def test_a_record_column_that_is_new_in_a_query_may_be_one_of_the_topic(tmp_path, knows):
    topics = Topics()
    before = plan_with_state(spec("*"), Config(), StoredState(directory=tmp_path), topics).plan
    stored = state_of(before, tmp_path, [Column("id", "VARCHAR")])
    found = plan_with_state(spec("*, _key AS k"), Config(), stored, topics if knows else None)
    kinds = [column.type for column in columns_of(found.plan, found.plan.sinks[0])]
    assert kinds == (["VARCHAR", "BIGINT", "BIGINT"] if knows else ["VARCHAR", "VARCHAR"])
    assert topics.asked == ["t", "t"][: 2 if knows else 1]


def test_a_record_column_stays_what_it_was(tmp_path):
    query = spec("id, _key AS k, _offset AS place")
    nothing = Topics(Column("id", "VARCHAR"))
    before = plan_with_state(query, Config(), StoredState(directory=tmp_path), nothing).plan
    stored = state_of(before, tmp_path, [Column("id", "VARCHAR")])
    later = Topics()
    assert plan_with_state(query, Config(), stored, later).plan == before
    assert later.asked == []


def test_a_topic_that_declares_no_columns_is_not_looked_up(tmp_path):
    topics = Topics()
    query = spec("_key AS k", topics={"t": {"columns": {}}})
    plan_with_state(query, Config(), StoredState(directory=tmp_path), topics)
    assert topics.asked == []
