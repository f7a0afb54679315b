"""A batch that runs again must have rows wherever some were delivered, or it is not committed."""

import os

import pytest

from kaflow_engine.connectors.kafka.client import KafkaSettings
from kaflow_engine.connectors.kafka.delivery.producer import SinkSettings
from kaflow_engine.connectors.kafka.delivery.topic_sink import TopicSink
from kaflow_engine.connectors.run_log import Delivered
from kaflow_engine.errors import StateError
from kaflow_engine.operators.rows.reports import BatchReport
from kaflow_engine.runtime.batch import runner as batches
from kaflow_engine.runtime.batch.position import Position
from kaflow_engine.runtime.batch.runner import BatchRunner
from kaflow_engine.runtime.jobs.executor import Executed, Shipment
from kaflow_engine.runtime.tasks.settings import TaskSettings
from kaflow_engine.state.log.batch_log import BatchLog, BatchRecord, StateRecord
from kaflow_engine.state.storage.store import LocalStore
from tests.engine.runtime.plans_here import lookup_plan

PLAN = lookup_plan("p", "events", "profiles", "out")
RECORD = BatchRecord(
    number=1,
    epoch=1,
    plan="f",
    batch_time=5,
    watermark={},
    ranges={"events": {0: (0, 9)}},
    read_to_end=(),
    bounded_end=False,
)


def replay(tmp_path, monkeypatch, delivered, slots, records=None):
    """Replay a batch whose tasks note rows of delivery partitions; return what the sinks knew."""
    log = BatchLog(LocalStore(tmp_path))
    state = StateRecord(
        state_id="s",
        generation=1,
        partitions=PLAN.partitions,
        created_ms=0,
        start={},
        dimension_ends={},
        schemas={},
        fingerprint="f",
    )
    log.create_state(state)
    log.begin(RECORD)
    sink = SinkSettings(
        kafka=KafkaSettings.of(["localhost:1"]),
        pipeline_id="p",
        state_id="s",
        generation=1,
        sink="output",
        epoch=4,
        delivered=delivered,
    )
    settings = TaskSettings(
        plan=PLAN,
        directory=tmp_path,
        state=state.ref,
        epoch=4,
        snapshots=log.store,
        sink=TopicSink(sink),
        driver=os.getpid(),
    )
    found = []

    def execute(frame, context, shipment, *sizes):
        found.append(shipment.settings.sink.settings)
        notes = tuple({"slots": [[slot, rows]]} for slot, rows in slots)
        return Executed(BatchReport(notes=notes), None)

    monkeypatch.setattr(batches, "execute_batch", execute)
    sinks = [TopicSink(sink)]
    runner = BatchRunner(None, log, "f", Shipment.of(settings), lambda: 2, sinks=sinks)
    frame = "records" if records is None else records
    standing = Position(batch=0, batch_time=0, offsets={})
    monkeypatch.setattr(BatchRunner, "_nothing", frame)
    source = type("Source", (), {"read": lambda self, ranges: frame})()
    runner.source = source
    runner.replay(standing, RECORD, PLAN, records)
    assert log.last_commit().number == 1
    return found[0]


@pytest.mark.parametrize(
    ("delivered", "slots"),
    [
        ({}, ()),
        ({0: Delivered(1, 3)}, [(0, 3), (1, 2)]),
        ({0: Delivered(1, 2, "x"), 1: Delivered(1, 2)}, [(0, 3), (1, 2)]),
    ],
)
def test_a_batch_with_the_rows_it_had_is_committed(tmp_path, monkeypatch, delivered, slots):
    sink = replay(tmp_path, monkeypatch, delivered, slots)
    assert (sink.tries, sink.same_rows) == (3, True)


def test_where_records_were_lost_rows_may_be_gone(tmp_path, monkeypatch):
    sink = replay(tmp_path, monkeypatch, {0: Delivered(1, 3)}, (), records="what is left")
    assert not sink.same_rows


def test_a_partition_that_had_rows_and_has_none_is_noticed(tmp_path, monkeypatch):
    delivered = {0: Delivered(1, 3), 1: Delivered(1, 2)}
    with pytest.raises(StateError, match="delivered 2 rows of partition 1, and has 0 now"):
        replay(tmp_path, monkeypatch, delivered, [(0, 3)])
    assert BatchLog(LocalStore(tmp_path)).last_commit() is None
