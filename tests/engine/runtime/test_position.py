from dataclasses import replace

import pytest

from kaflow_engine.operators.rows.reports import BatchReport
from kaflow_engine.operators.watermark import Mark, WatermarkState
from kaflow_engine.runtime.batch.position import (
    Position,
    as_the_state_reads,
    counted,
    load_standing,
    next_due,
)
from kaflow_engine.state.log.batch_log import BatchLog, BatchRecord, CommitRecord, StateRecord
from kaflow_engine.state.storage.store import LocalStore


def batch(watermark):
    return BatchRecord(
        number=1,
        epoch=1,
        plan="p",
        batch_time=100,
        watermark=watermark,
        ranges={"a": {0: (3, 8)}},
        read_to_end=(),
        bounded_end=False,
    )


@pytest.mark.parametrize(
    ("before", "watermark", "reported", "after"),
    [
        ({}, {0: 10}, {}, {}),
        ({}, {0: 10}, {0: 40}, {0: 40}),
        ({0: 50}, {0: 10}, {0: 40}, {0: 40}),
        ({0: 50}, {0: 10}, {}, {0: 50}),
        ({0: 50}, {0: 60}, {}, {}),
        ({0: 50}, {0: 60}, {0: 90}, {0: 90}),
        ({0: 50}, {}, {}, {0: 50}),
        # one chain looks into its index, the other does not
        ({0: 50, 2: 50}, {0: 60, 2: 10}, {}, {2: 50}),
        ({0: 50, 2: 50}, {0: 60, 2: 10}, {0: 70, 2: 40}, {0: 70, 2: 40}),
        # one that is gone has nothing due
        ({0: 50, 1: 50}, {0: 10}, {}, {0: 50}),
    ],
)
def test_next_due_is_a_lower_bound(before, watermark, reported, after):
    standing = Position(batch=0, batch_time=0, offsets={}, next_due=before)
    found = next_due(standing, batch(watermark), BatchReport(next_due=reported), {0, 2})
    assert found == after


def test_counters_add_up():
    assert counted({"a": 1, "b": 2}, BatchReport(counters={"b": -1, "c": 4})) == {
        "a": 1,
        "b": 1,
        "c": 4,
    }


MARKS = [
    ({0: Mark(value=7, base=7)}, {0: 9}),
    ({0: Mark()}, {}),
    ({0: Mark(value=7, base=7), 2: Mark()}, {0: 9}),
    ({2: Mark(value=7, base=6)}, {2: 9}),
]


@pytest.mark.parametrize(("marks", "due"), MARKS)
def test_where_a_log_ends_is_where_the_next_batch_begins(tmp_path, marks, due):
    log = BatchLog(LocalStore(tmp_path))
    state = StateRecord(
        state_id="x",
        generation=1,
        partitions=2,
        created_ms=0,
        start={"a": {0: 3, 1: 4}},
        dimension_ends={},
        schemas={},
        fingerprint="p",
    )
    log.create_state(state)
    assert load_standing(log, state) == Position(batch=0, batch_time=0, offsets=state.start)
    log.begin(batch({}))
    mark = WatermarkState(marks=marks, latest=(("a", 0, 7),), seen=(("a", 0, 100),))
    log.commit(
        CommitRecord(
            number=1, epoch=1, changes={}, watermark=mark.to_json(), next_due=due, counters={"n": 2}
        )
    )
    assert load_standing(log, state) == Position(
        batch=1,
        batch_time=100,
        offsets={"a": {0: 8, 1: 4}},
        watermark=mark,
        next_due=due,
        counters={"n": 2},
    )


def of_topics(start, **more):
    return StateRecord(
        state_id="x",
        generation=1,
        partitions=2,
        created_ms=0,
        start={topic: {0: at} for topic, at in start.items()},
        dimension_ends={},
        schemas={},
        fingerprint="p",
        **more,
    )


READ = {"a": {0: 8}, "gone": {0: 9}, "again": {0: 7}}


def test_topics_that_are_read_no_more_are_left_and_others_begin_where_they_were_added(tmp_path):
    """The last batch read them for an earlier plan."""
    state = of_topics(
        {"a": 3, "again": 5, "new": 6},
        topic_ids={"a": "A", "again": "2", "new": "N"},
        added_behind={"again": 1, "new": 1},
    )
    log = BatchLog(LocalStore(tmp_path))
    log.create_state(state)
    ranges = {topic: {0: (1, at[0])} for topic, at in READ.items()}
    ids = {"a": "A", "gone": "G", "again": "1"}
    log.begin(replace(batch({}), ranges=ranges, topic_ids=ids))
    rows = tuple((topic, 0, 7) for topic in READ)
    marks = WatermarkState(marks={0: Mark(value=2, base=2)}, latest=rows, seen=rows)
    log.commit(CommitRecord(number=1, epoch=1, changes={}, watermark=marks.to_json(), next_due={}))
    found = load_standing(log, state)
    assert found.offsets == {"a": {0: 8}, "again": {0: 5}, "new": {0: 6}}
    assert found.topic_ids == state.topic_ids
    assert found.watermark == replace(marks, latest=rows[:1], seen=rows[:1])
    replayed = Position(batch=1, batch_time=0, offsets=READ, topic_ids=ids, watermark=marks)
    left = as_the_state_reads(replayed, state)
    assert (left.offsets, left.topic_ids) == (found.offsets, found.topic_ids)
    assert left.watermark == found.watermark


def test_a_batch_behind_which_a_topic_was_added_counts():
    state = of_topics({"a": 3, "again": 5}, added_behind={"again": 1})
    later = Position(batch=2, batch_time=0, offsets={"a": {0: 8}, "again": {0: 7}})
    assert as_the_state_reads(later, state).offsets == {"a": {0: 8}, "again": {0: 7}}
