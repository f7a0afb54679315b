"""A backfill beside its stream: each row of the table once, and none is erased; without Spark."""
# pyright: basic

import pytest
from confluent_kafka import TopicPartition
from deltalake import DeltaTable

from kaflow_engine.connectors.delta.table import DeltaSink
from kaflow_engine.connectors.kafka.admin import create_topic
from kaflow_engine.connectors.kafka.client import open_admin, open_producer
from kaflow_engine.errors import SinkError, StateError
from kaflow_engine.flow.flow import Backfill
from kaflow_engine.flow.graph import table_sinks
from kaflow_engine.model.config import Config
from kaflow_engine.model.specs import PipelineSpec
from kaflow_engine.runtime import pipeline
from kaflow_engine.runtime.application import run_backfill, run_pipelines
from kaflow_engine.runtime.batch import runner as batches
from kaflow_engine.runtime.drive.backfill_guard import check_backfill
from kaflow_engine.runtime.planning.prepare import prepare
from kaflow_engine.runtime.source import record_source
from tests.acceptance import crash_here

pytestmark = pytest.mark.kafka

START = 1_767_225_600_000
MINUTE, HOUR = 60_000, 3_600_000
FIRST = Backfill(start=START, end=START + HOUR)
JOIN = 'SELECT c.id, v.v FROM "{0}.clicks" c JOIN "{0}.views" v ON c.id = v.id'
ALONE = 'SELECT c.id, c.at AS v FROM "{0}.clicks" c'
SIDES = {"clicks": {"id": "VARCHAR", "at": "BIGINT"}, "views": {"id": "VARCHAR", "v": "VARCHAR"}}


@pytest.fixture
def world(broker, unique, tmp_path, monkeypatch):
    monkeypatch.setattr(record_source.RecordSource, "read", crash_here._read)
    monkeypatch.setattr(batches, "no_records", lambda spark: crash_here.RECORDS.empty_table())
    monkeypatch.setattr(batches, "execute_batch", crash_here._whole)
    monkeypatch.setattr(record_source.RecordSource, "reads_topics", False)
    monkeypatch.setattr(pipeline, "LiveStream", crash_here._Live)
    return World(broker, unique, tmp_path)


class World:
    """One pipeline into a table with a partition for each hour, its topics, and its stream."""

    def __init__(self, broker, name, path):
        self.broker, self.name = broker, name
        self.config = Config.model_validate(
            {
                "kafka": {"brokers": broker.bootstrap},
                "state": {"rocksdb": {"path": str(path / "state")}},
                "warehouse": str(path / "warehouse"),
            }
        )
        for side in SIDES:
            create_topic(broker.settings, f"{name}.{side}", 1, {"retention.ms": "-1"})
        self.producer = open_producer(broker.settings).api

    def send(self, side, key, at, stamp=None):
        """Send a record of an event time in minutes, and of a Kafka timestamp if it is another."""
        about = b'{"id":"%s","v":"x","at":%d}' % (key.encode(), START + at * MINUTE)
        stamp = START + (at if stamp is None else stamp) * MINUTE
        self.producer.produce(f"{self.name}.{side}", about, key, 0, timestamp=stamp)
        assert self.producer.flush(30) == 0

    def lose(self, before):
        """Remove the clicks before an offset from the topic, as retention does."""
        place = TopicPartition(f"{self.name}.clicks", 0, before)
        admin = open_admin(self.broker.settings).api
        admin.delete_records([place])[place].result(20)

    def plan(self, query, **more):
        """Plan the pipeline."""
        spec = PipelineSpec.model_validate(
            {
                "name": self.name,
                "query": query.format(self.name),
                "output": {"table": "rows", "partition": "hour"},
                "topics": {
                    f"{self.name}.{side}": {
                        "columns": columns,
                        "idle_timeout": "7d",
                        **({"event_time": "at"} if side == "clicks" else {}),
                    }
                    for side, columns in SIDES.items()
                    if f".{side}" in query
                },
                "partitions": 1,
                **more,
            }
        )
        (self.planned,) = prepare([spec], self.config)
        return self

    def stream(self):
        """Let the stream read all that there is, and what then is due."""
        run_pipelines(
            [self.planned.plan], self.config, until_caught_up=True, spark=crash_here._NO_SPARK
        )

    def fill(self, wanted):
        """Run a backfill as the command does."""
        check_backfill(self.planned.spec, self.config, wanted)
        run_backfill(self.planned.plan, self.config, wanted, spark=crash_here._NO_SPARK)

    def ids(self):
        """Return what the table holds."""
        (sink,) = table_sinks(self.planned.plan)
        table = DeltaTable(sink.table.path).to_pyarrow_table()
        return sorted(table["id"].to_pylist())


def test_a_range_of_which_rows_wait_is_refused_until_nothing_waits(world):
    world.plan(JOIN, emission={"type": "smart"}, state={"events": {"default_ttl": "2h"}})
    world.send("clicks", "waits", 30)
    world.send("clicks", "later", 61)
    world.send("views", "other", 61)
    world.stream()
    with pytest.raises(StateError, match="may still write rows of 2026-01-01T00:00:00Z"):
        world.fill(FIRST)
    world.send("views", "waits", 70)
    world.stream()
    assert world.ids() == ["waits"]
    for side in SIDES:
        world.send(side, "much later", 200)
    world.stream()
    world.fill(FIRST)
    world.send("views", "waits", 80)
    world.stream()
    assert world.ids() == ["much later", "waits"]


def test_late_rows_that_come_while_a_backfill_runs_stay(world, monkeypatch):
    world.plan(ALONE)
    world.send("clicks", "one", 30)
    world.send("clicks", "beyond", 70)
    world.stream()
    replace = DeltaSink.replace

    def replace_late(sink, *about):
        world.send("clicks", "late", 31)
        world.stream()
        replace(sink, *about)

    monkeypatch.setattr(DeltaSink, "replace", replace_late)
    world.fill(FIRST)
    assert world.ids() == ["beyond", "late", "one"]


def test_a_commit_whose_answer_is_lost_is_not_done_again(world, monkeypatch):
    world.plan(ALONE)
    world.send("clicks", "one", 30)
    world.send("clicks", "beyond", 70)
    world.stream()
    replace, failed = DeltaSink.replace, []

    def replace_and_fail(sink, *about):
        replace(sink, *about)
        if not failed:
            failed.append(sink)
            raise SinkError("the commit was done, and its answer lost")

    monkeypatch.setattr(DeltaSink, "replace", replace_and_fail)
    world.fill(FIRST)
    assert failed
    assert world.ids() == ["beyond", "one"]


def test_rows_of_records_that_are_not_read_stay(world):
    """Their Kafka timestamps are too far away, or the topic does not hold them any more."""
    world.plan(ALONE)
    world.send("clicks", "gone", 10)
    world.send("clicks", "one", 30)
    world.send("clicks", "beyond", 300)
    world.send("clicks", "much too late", 31, stamp=310)
    world.stream()
    world.lose(1)
    world.fill(FIRST)
    assert world.ids() == ["beyond", "gone", "much too late", "one"]
    world.fill(FIRST)
    assert world.ids() == ["beyond", "gone", "much too late", "one"]


def test_records_that_the_stream_has_not_read_are_left_to_it(world):
    world.plan(ALONE)
    world.send("clicks", "one", 30)
    world.send("clicks", "beyond", 70)
    world.stream()
    world.send("clicks", "late", 31)
    world.fill(FIRST)
    assert world.ids() == ["beyond", "one"]
    world.stream()
    assert world.ids() == ["beyond", "late", "one"]


def test_without_the_state_of_the_stream_it_takes_force(world, tmp_path):
    world.plan(ALONE)
    world.send("clicks", "one", 30)
    world.stream()
    (tmp_path / "state").rename(tmp_path / "elsewhere")
    with pytest.raises(StateError, match="no state of the stream"):
        world.fill(FIRST)
    world.fill(Backfill(start=FIRST.start, end=FIRST.end, force=True))
    assert world.ids() == ["one"]
