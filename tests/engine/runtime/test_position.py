import pytest

from kaflow_engine.operators.rows.reports import BatchReport
from kaflow_engine.operators.watermark import WatermarkState
from kaflow_engine.runtime.batch.position import Position, counted, load_standing, next_due
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
        (None, 10, None, None),
        (None, 10, 40, 40),
        (50, 10, 40, 40),
        (50, 10, None, 50),
        (50, 60, None, None),
        (50, 60, 90, 90),
        (50, None, None, 50),
    ],
)
def test_next_due_is_a_lower_bound(before, watermark, reported, after):
    standing = Position(batch=0, batch_time=0, offsets={}, next_due=before)
    assert next_due(standing, batch(watermark), BatchReport(next_due=reported)) == after


def test_counters_add_up():
    assert counted({"a": 1, "b": 2}, BatchReport(counters={"b": -1, "c": 4})) == {
        "a": 1,
        "b": 1,
        "c": 4,
    }


def test_where_a_log_ends_is_where_the_next_batch_begins(tmp_path):
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
    log.begin(batch(None))
    mark = WatermarkState(value=7, base=7, latest=(("a", 0, 7),), seen=(("a", 0, 100),))
    log.commit(
        CommitRecord(
            number=1, epoch=1, changes={}, watermark=mark.to_json(), next_due=9, counters={"n": 2}
        )
    )
    assert load_standing(log, state) == Position(
        batch=1,
        batch_time=100,
        offsets={"a": {0: 8, 1: 4}},
        watermark=mark,
        next_due=9,
        counters={"n": 2},
    )
