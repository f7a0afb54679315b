"""A batch that fails again and again becomes a smaller one, and nothing of it is left out."""

from dataclasses import replace
from types import SimpleNamespace

import pytest

from kaflow_engine.connectors.connections import Connections
from kaflow_engine.connectors.kafka.client import KafkaSettings
from kaflow_engine.connectors.kafka.delivery.producer import SinkSettings
from kaflow_engine.connectors.kafka.delivery.topic_sink import TopicSink
from kaflow_engine.connectors.run_log import Delivered
from kaflow_engine.errors import StateError
from kaflow_engine.operators.rows.reports import BatchReport
from kaflow_engine.runtime.batch.batch_backup import batches_left, to_kept
from kaflow_engine.runtime.batch.batch_limit import USUAL, BatchLimit
from kaflow_engine.runtime.batch.position import Position, load_standing
from kaflow_engine.runtime.batch.runner import BatchRunner
from kaflow_engine.runtime.source.offsets import size_of
from kaflow_engine.runtime.takeover.recut import recut, smaller
from kaflow_engine.state.log.batch_log import BatchLog, BatchRecord, CommitRecord, StateRecord
from kaflow_engine.state.storage.store import Damaged, LocalStore

STATE = StateRecord(
    state_id="s",
    generation=1,
    partitions=1,
    created_ms=0,
    start={},
    dimension_ends={},
    schemas={},
    fingerprint="f",
)
RECORD = BatchRecord(
    number=1,
    epoch=2,
    plan="f",
    batch_time=5,
    watermark={0: 4},
    ranges={"a": {0: (0, 400)}},
    read_to_end=(("a", 0),),
    bounded_end=True,
)


class Killed(BaseException):
    """Ends a run as SIGKILL would."""


class Kept:
    """Batch records of the pipeline's own topic; the run may be killed while it writes."""

    def __init__(self, killed=False):
        self.records, self.killed = {1: to_kept(RECORD, None)}, killed

    def put(self, record):
        if self.killed:
            raise Killed
        self.records[record.number] = to_kept(record, None)


class Table:
    def __init__(self, last):
        self.last = last

    def delivered(self, batch):
        return batch <= self.last


@pytest.fixture
def log(tmp_path):
    found = BatchLog(LocalStore(tmp_path))
    found.create_state(STATE)
    found.begin(RECORD)
    return found


def run_of(log, epoch, delivered=None, table=None, kept=None, few=50):
    sink = SinkSettings(
        kafka=KafkaSettings.of(["localhost:1"]),
        pipeline_id="p",
        state_id="s",
        generation=1,
        sink="output",
        epoch=epoch,
        delivered=delivered or {},
    )
    held = max((found.batch for found in (delivered or {}).values()), default=0)
    topics = TopicSink(sink, held)
    shipment = SimpleNamespace(
        epoch=epoch, settings=SimpleNamespace(sink=topics, driver=0, connections=Connections())
    )
    sinks = [topics, *([table] if table else [])]
    runner = BatchRunner(None, log, "f", shipment, lambda: 1, kept=kept, sinks=sinks)
    limit = BatchLimit(1_000, few * USUAL, lambda topic, ranges: 0)
    return SimpleNamespace(runner=runner, limit=limit, plan=SimpleNamespace(name="p"))


@pytest.mark.parametrize(
    ("ranges", "fewer", "read_to_end"),
    [
        ({"a": {0: (0, 400)}}, {"a": {0: (0, 100)}}, ()),
        (
            {"a": {0: (5, 405), 1: (7, 8), 2: (9, 9)}, "b": {0: (3, 3)}},
            {"a": {0: (5, 104), 1: (7, 8), 2: (9, 9)}, "b": {0: (3, 3)}},
            (("a", 1), ("a", 2), ("b", 0)),
        ),
    ],
)
def test_the_first_quarter_comes_first(ranges, fewer, read_to_end):
    ends = tuple((t, p) for t, ps in ranges.items() for p in ps)
    found = smaller(replace(RECORD, ranges=ranges, read_to_end=ends), 4)
    assert (found.ranges, found.read_to_end) == (fewer, read_to_end)
    assert (found.number, found.epoch, found.bounded_end) == (1, 4, False)
    assert (found.plan, found.batch_time, found.watermark) == ("f", 5, {0: 4})


@pytest.mark.parametrize(
    ("epoch", "about", "size"),
    [
        (2, {}, 400),
        (3, {}, 400),
        (4, {}, 100),
        (9, {}, 100),
        (4, {"few": 400}, 400),
        (4, {"delivered": {3: Delivered(1, 5)}}, 400),
        (4, {"delivered": {3: Delivered(1, 5, "x")}}, 400),
        (4, {"delivered": {3: Delivered(0, 5)}}, 100),
        (4, {"table": Table(1)}, 400),
        (4, {"table": Table(0)}, 100),
    ],
)
def test_only_what_failed_twice_and_no_sink_holds_is_cut_again(log, epoch, about, size):
    found = recut(run_of(log, epoch, **about), log, RECORD)
    assert size_of(found.ranges) == size
    assert (log.open_batch() is None) == (size == 100)
    if size == 100:
        log.begin(found)
        assert log.open_batch().ranges == {"a": {0: (0, 100)}}


@pytest.mark.parametrize("killed", [True, False])
def test_log_and_topic_hold_one_cut_wherever_it_ends(log, killed):
    kept = Kept(killed)
    try:
        recut(run_of(log, 4, kept=kept), log, RECORD)
    except Killed:
        assert killed
    (left,) = batches_left(log, kept.records, 5, "p")
    assert size_of(left.ranges) == (400 if killed else 100)
    assert to_kept(left, None) == kept.records[1]


def test_a_run_that_still_works_on_the_old_cut_cannot_commit_it(log):
    stale, newer = run_of(log, 2).runner, run_of(log, 4)
    log.begin(recut(newer, log, RECORD))
    at = Position(batch=0, batch_time=0, offsets={})
    with pytest.raises(StateError, match="another run has cut batch 1 again"):
        stale._commit(at, RECORD, SimpleNamespace(operators=()), BatchReport())
    assert log.last_commit() is None
    log.commit(CommitRecord(number=1, epoch=2, changes={}, watermark={}, next_due={}))
    with pytest.raises(Damaged, match="was committed as run 2 cut it, and run 4 has cut it again"):
        load_standing(log, STATE)
