"""What a run decides of a pipeline whose outputs read other topics, and join them otherwise."""
# pyright: basic

import re
from dataclasses import replace

import pytest

from kaflow_engine.cli.run.running import _arrow
from kaflow_engine.connectors.kafka.client import KafkaSettings
from kaflow_engine.connectors.kafka.clusters import input_topics
from kaflow_engine.errors import Location, StateError
from kaflow_engine.flow.flow import Backfill
from kaflow_engine.model.columns import Column
from kaflow_engine.model.config import Config
from kaflow_engine.model.pipelines.loader import pipeline_from_mapping
from kaflow_engine.operators.rows.reports import BatchReport, PartitionReport
from kaflow_engine.operators.watermark import Mark, WatermarkState
from kaflow_engine.plan.planner.pipeline_plan import build_plan
from kaflow_engine.runtime.batch.data_loss import topics_at_stake
from kaflow_engine.runtime.batch.position import Position
from kaflow_engine.runtime.batch.progress import Watch, level_name, operator_name
from kaflow_engine.runtime.batch.runner import BatchDone
from kaflow_engine.runtime.drive import bounded
from kaflow_engine.runtime.drive.backfill_guard import Taken, taken
from kaflow_engine.runtime.jobs.executor import Executed
from kaflow_engine.runtime.planning.written_topics import partitions_of
from kaflow_engine.runtime.sink.outputs import replaced_by
from kaflow_engine.runtime.tasks.outputs import column_outputs
from kaflow_engine.state.log.batch_log import StateRecord
from tests.engine.runtime.stream_here import write_stream

HOUR, MINUTE = 3_600_000, 60_000
START = 1_767_225_600_000
SLACK = 5 * MINUTE
WANTED = Backfill(start=START, end=START + HOUR, slack=SLACK)
SPEC = {
    "name": "p",
    "outputs": [
        {"query": "SELECT a.id, b.n FROM a LEFT JOIN b ON a.id = b.id", "topic": "x", "key": "id"},
        {"query": "SELECT id FROM b", "table": "t"},
        {"query": "SELECT c.id, d.n FROM c LEFT JOIN d ON c.id = d.id", "table": "u"},
    ],
    "state": {
        "dimensions": ["d"],
        "events": {"default_ttl": "2h", "overrides": {"a": "20m"}},
    },
    "dead_letters": {"topic": "dead"},
    "partitions": 1,
    "dimensions_first": False,
}
"""Chain 0 joins b to a, chain 1 reads b, and chain 2 looks up d for c."""
COLUMNS = (Column("id", "VARCHAR"), Column("n", "BIGINT"))
PLANNED = build_plan(
    pipeline_from_mapping(SPEC, Location("p.yaml", 1)), Config(), dict.fromkeys("abcd", COLUMNS)
)
PLAN = PLANNED.plan
STATE = StateRecord(
    state_id="s",
    generation=1,
    partitions=1,
    created_ms=0,
    start={"a": {0: 1}, "b": {0: 2}, "c": {0: 3, 1: 4}, "d": {0: 0}},
    dimension_ends={},
    schemas={},
    fingerprint="",
    goal={"a": {0: 11}, "b": {0: 12}, "c": {0: 13, 1: 14}, "d": {0: 10}},
)


@pytest.mark.parametrize(("first", "until"), [(False, START + 3 * HOUR + SLACK), (True, None)])
def test_a_backfill_reads_as_far_as_any_chain_needs(first, until):
    own = (START - SLACK, START + HOUR + SLACK)
    assert bounded.reach(replace(PLAN, dimensions_first=first), WANTED) == {
        "a": own,
        # it drives chain 1, and is joined in chain 0
        "b": (START - 2 * HOUR - SLACK, START + HOUR + 20 * MINUTE + SLACK),
        "c": own,
        "d": (None, until),
    }


def test_a_backfill_replaces_rows_by_the_topic_that_drives_the_table():
    found = {
        into.output.name: replaced_by(into.parted, WANTED, STATE)
        for into in column_outputs(PLAN)
        if into.parted
    }
    assert {name: dict(each.read) for name, each in found.items()} == {
        "t": {0: (2, 12)},
        "u": {0: (3, 13), 1: (4, 14)},
    }


@pytest.mark.parametrize(
    ("wanted", "topics"),
    [(None, set()), (WANTED, {"b", "c"}), (replace(WANTED, force=True), set())],
)
def test_no_record_may_be_lost_that_a_table_is_made_of(wanted, topics):
    assert topics_at_stake(replace(PLAN, backfill=wanted)) == topics


@pytest.mark.parametrize(
    ("compacted", "table"), [("a", None), ("b", "t"), ("c", "u"), ("d", None), ("bc", "t")]
)
def test_a_compacted_topic_that_a_table_is_made_of(monkeypatch, compacted, table):
    def settings(kafka, topic):
        return {"cleanup.policy": "compact" if topic in compacted else "delete"}

    monkeypatch.setattr(input_topics, "topic_settings", settings)
    nowhere = input_topics.InputTopics.all_in(KafkaSettings(()))
    bounded.refuse_compacted(PLAN, replace(WANTED, force=True), nowhere)
    if table is None:
        bounded.refuse_compacted(PLAN, WANTED, nowhere)
        return
    said = f"topic '{compacted[0]}' is compacted: table '{table}' may have rows of records that are"
    with pytest.raises(StateError, match=re.escape(said)):
        bounded.refuse_compacted(PLAN, WANTED, nowhere)


END = 1 << 50
SETTLED = [
    # ran with, watermark after, next due; chain 0 keeps rows for 20 minutes
    ({}, {}, {}, None),
    ({}, {0: 90, 1: 90}, {}, None),
    ({}, {0: 90, 1: 10, 2: 80}, {}, 90 - 20 * MINUTE),
    ({}, {0: END, 1: 10, 2: 80}, {}, 10),
    ({0: END, 1: 10, 2: 5}, {0: END, 1: 20, 2: 7}, {}, 7),
    # what falls due in one chain says nothing of another
    ({0: 3, 1: 10, 2: END}, {0: 9, 1: END, 2: END}, {0: 7}, 7 - 20 * MINUTE),
    ({0: END, 1: 10, 2: END}, {0: END, 1: END, 2: END}, {0: 7}, END - 20 * MINUTE),
]


@pytest.mark.parametrize(("ran_with", "after", "due", "settled"), SETTLED)
def test_a_stream_is_settled_where_each_chain_is(tmp_path, ran_with, after, due, settled):
    write_stream(tmp_path, PLAN, ran_with, after, due)
    assert taken(tmp_path) == Taken(offsets={"events": {0: 7}}, settled=settled)


def test_topics_that_are_created_have_the_partitions_of_what_their_rows_are_made_of():
    assert partitions_of(PLAN, {"a": 3, "b": 2, "c": 5, "d": 9}) == {"x": 3, "dead": 5}


def test_names_of_operators_and_levels():
    assert [operator_name(PLAN, f"{state}-0") for state in (1, 2001)] == ["1:b", "2001:d"]
    assert [level_name(PLAN, level) for level in range(3)] == ["map", "join b, join d", "deliver"]


def test_what_a_start_says():
    assert _arrow(PLANNED) == "p: a, b, c, d -> x, t, u (immediate, json, table)"


ALL = {0: 50, 1: 70, 2: 60}
FALLEN = 45 + 20 * MINUTE
PROGRESS = [
    # watermarks, next due; of the pipeline, settled by table, how long a row has waited
    ({**ALL, 2: None}, {}, None, {"t": 70}, None),
    (ALL, {}, 50, {"t": 70, "u": 60}, None),
    (ALL, {0: FALLEN}, 50, {"t": 70, "u": 60}, 5),
    # the chain that is ahead has waited longer
    (ALL, {0: FALLEN, 2: 40 + 2 * HOUR}, 50, {"t": 70, "u": 60}, 20),
    ({**ALL, 0: None}, {0: FALLEN}, None, {"t": 70, "u": 60}, None),
    # rows that the next batch writes are not there yet, but those of the last one are
    (ALL, {1: 65}, 50, {"t": 65, "u": 60}, 5 + 2 * HOUR),
    (ALL, {1: 55}, 50, {"t": 58, "u": 60}, 15 + 2 * HOUR),
]


@pytest.mark.parametrize(("marks", "due", "watermark", "settled", "waited"), PROGRESS)
def test_the_progress_of_several_chains(marks, due, watermark, settled, waited):
    at = progress_of(marks, due)
    assert (at.watermark, at.settled, at.waited) == (watermark, settled, waited)


@pytest.mark.parametrize(
    ("marks", "newest"),
    [({0: 50, 1: 70, 2: 60}, 59), ({0: 50, 1: 40, 2: 60}, 57), ({0: 50, 1: 70, 2: None}, 900)],
)
def test_the_newest_record_of_the_watermark_that_is_behind(marks, newest):
    assert progress_of(marks, {}, a=59, b=57, c=900).holder_newest == newest


def progress_of(marks, due, **newest):
    """Return the progress behind a batch that has read records of these event times."""
    heard = []
    state = WatermarkState(marks={n: Mark(value=value) for n, value in marks.items()})
    read = {
        (topic, 0): PartitionReport(max_ts=at, first_offset=0, last_offset=0, count=1)
        for topic, at in newest.items()
    }
    report = BatchReport(partitions=read)
    done = BatchDone(
        watermarks={1: 58},
        standing=Position(batch=1, batch_time=100, offsets={}, watermark=state, next_due=due),
        report=report,
        size=0,
        seconds=1.0,
        phases={},
        executed=Executed(report=report, output=None),
    )
    Watch("p", heard.append).batch_done(done, {}, PLAN)
    return heard[-1]
