"""A table holds each row once, in its partition, after failures and beside backfills."""
# pyright: basic

import os
import shutil
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import duckdb
import polars as pl
import pytest
from deltalake import DeltaTable

from kaflow_engine.connectors.delta.outputs import StreamTable
from kaflow_engine.connectors.kafka.admin import delete_topics
from kaflow_engine.connectors.kafka.client import open_producer
from kaflow_engine.connectors.kafka.run_log.transactions import control_topic
from kaflow_engine.errors import SinkError, StateError
from kaflow_engine.flow.flow import Backfill
from kaflow_engine.flow.graph import table_sinks
from kaflow_engine.runtime.drive.backfill_guard import check_backfill
from kaflow_engine.runtime.planning.prepare import prepare
from kaflow_engine.runtime.spark.jars import spark_delta_jars
from kaflow_engine.runtime.spark.java import find_java
from tests.acceptance.three_days import DAY, SECOND, START, config_for, load, spec_of

IN_SPARK = """
import sys
from pyspark.sql import SparkSession
table, jars = sys.argv[1:]
settings = {
    "spark.jars": jars,
    "spark.sql.extensions": "io.delta.sql.DeltaSparkSessionExtension",
    "spark.sql.catalog.spark_catalog": "org.apache.spark.sql.delta.catalog.DeltaCatalog",
    "spark.ui.enabled": "false",
    "spark.databricks.delta.snapshotPartitions": "1",
    "spark.driver.extraJavaOptions": "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC",
}
spark = SparkSession.builder.master("local[1]").config(map=settings).getOrCreate()
print(spark.read.format("delta").load(table).count())
"""
pytestmark = [pytest.mark.spark, pytest.mark.kafka]


@pytest.fixture(scope="module")
def topics(broker):
    load(broker, "tabled")
    return "tabled"


@pytest.fixture
def config(broker, tmp_path):
    return config_for(
        broker, tmp_path / "state", max_records=150, warehouse=str(tmp_path / "warehouse")
    )


def test_stream_fills_partitions_and_a_backfill_replaces_some(broker, spark, topics, config):
    from kaflow_engine.runtime.application import run_backfill, run_pipelines

    (planned,) = prepare([spec_of("event", topics, "table", to={"table": "clicks"})], config)
    plan = planned.plan
    run_pipelines([plan], config, until_caught_up=True, spark=spark)
    streamed = contents(plan)
    assert pl.read_delta(path_of(plan)).height == len(streamed)
    assert rows_in_spark(path_of(plan)) == len(streamed)
    assert {day for day, *_ in streamed} == {"2026-01-01", "2026-01-02", "2026-01-03"}
    assert len(streamed) > 3 * 144
    third = Backfill(start=START + 2 * DAY, end=START + 3 * DAY)
    with pytest.raises(StateError, match="may still write rows of 2026-01-03T00:00:00Z/2026-01-04"):
        check_backfill(planned.spec, config, third)
    check_backfill(planned.spec, config, replace(third, force=True))
    check_backfill(planned.spec, config, SECOND)
    files = set(DeltaTable(path_of(plan)).file_uris())
    run_backfill(plan, config, SECOND, spark=spark)
    assert contents(plan) == streamed
    kept = files & set(DeltaTable(path_of(plan)).file_uris())
    assert {name.split("_day=")[1][:10] for name in files - kept} == {"2026-01-02"}
    # the stream goes on beside what the backfill left
    producer = open_producer(broker.settings).api
    last = b'{"id":1000,"u":"u1"}'
    producer.produce(f"{topics}.clicks", last, b"u1", 0, timestamp=START + 3 * DAY + 1)
    assert producer.flush(30) == 0
    run_pipelines([plan], config, until_caught_up=True, spark=spark)
    assert set(contents(plan)) - set(streamed) == {("2026-01-04", 1000, "u1", None)}
    assert len(contents(plan)) == len(streamed) + 1


def test_a_batch_that_was_added_and_runs_again_is_not_added_again(
    spark, topics, config, monkeypatch
):
    from kaflow_engine.runtime.application import run_pipelines

    commit, failed = StreamTable.commit, []

    def commit_and_fail(self, batch):
        commit(self, batch)
        if batch.number == 2 and not failed:
            failed.append(batch)
            raise SinkError("the commit was done, and its answer lost")

    (planned,) = prepare([spec_of("alone", topics, "again", to={"table": "again"})], config)
    monkeypatch.setattr(StreamTable, "commit", commit_and_fail)
    run_pipelines([planned.plan], config, until_caught_up=True, spark=spark)
    assert failed
    ids = sorted(number for _, number, *_ in contents(planned.plan) if number < 1000)
    assert ids == [n for n in range(3 * 144) if n % 3]


def test_a_state_that_was_lost_does_not_write_its_rows_twice(broker, spark, topics, config):
    from kaflow_engine.runtime.application import run_pipelines

    (planned,) = prepare([spec_of("alone", topics, "lost", to={"table": "lost"})], config)
    run_pipelines([planned.plan], config, until_caught_up=True, spark=spark)
    shutil.rmtree(Path(config.state.rocksdb.path) / planned.plan.pipeline)
    # without dead letters the topic would know of no delivery
    delete_topics(broker.settings, [control_topic(planned.plan.pipeline)])
    with pytest.raises(StateError, match=r"has delivered rows \(.*\) to table 'lost' from state"):
        run_pipelines([planned.plan], config, until_caught_up=True, spark=spark)


def test_hours(spark, topics, config):
    from kaflow_engine.runtime.application import run_backfill

    to = {"table": "hours", "partition": "hour"}
    (planned,) = prepare([spec_of("alone", topics, "hours", to=to)], config)
    run_backfill(planned.plan, config, replace(SECOND, force=True), spark=spark)
    found = DeltaTable(path_of(planned.plan))
    hours = {part["_hour"] for part in found.partitions()}
    assert hours == {f"2026-01-02-{hour:02}" for hour in range(24)}


def rows_in_spark(table):
    """Count the rows of a table in a Spark that has the jars for it."""
    done = subprocess.run(
        [sys.executable, "-c", IN_SPARK, table, ",".join(map(str, spark_delta_jars()))],
        env={**os.environ, "JAVA_HOME": str(find_java().home), "SPARK_LOCAL_IP": "127.0.0.1"},
        capture_output=True,
        text=True,
        timeout=180,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-3000:]
    return int(done.stdout)


def path_of(plan):
    """Return the folder of the table of a plan that writes one."""
    (sink,) = table_sinks(plan)
    return sink.table.path


def contents(plan):
    """Read a table as its users do, with DuckDB over Arrow."""
    found = DeltaTable(path_of(plan)).to_pyarrow_dataset()  # noqa: F841
    rows = duckdb.sql(
        "SELECT _day, id, u, v FROM found "
        "WHERE strftime(_event_time AT TIME ZONE 'UTC', '%Y-%m-%d') = _day ORDER BY ALL"
    )
    return rows.fetchall()
