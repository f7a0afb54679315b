"""A table is a partitioned asset, filled by its stream and by backfills."""
# pyright: basic

import os
import subprocess
import sys
from datetime import UTC, date, datetime
from pathlib import Path

import dagster as dg
import pyarrow as pa
import pytest
from deltalake import DeltaTable

from kaflow_dagster.build import build_kaflow_defs
from kaflow_dagster.streams.outputs import OutputReports
from kaflow_dagster.streams.reports import PipelineAssets, Reports
from kaflow_dagster.tables.backfill import spark_settings, with_spark
from kaflow_dagster.tables.closed_partitions import ClosedPartitions
from kaflow_engine.connectors.delta.data_files import write_files
from kaflow_engine.connectors.delta.table import DeltaSink
from kaflow_engine.connectors.kafka.admin import create_topic
from kaflow_engine.connectors.kafka.client import open_producer
from kaflow_engine.model.columns import Column
from kaflow_engine.model.config import Config
from kaflow_engine.model.specs import PipelineSpec
from kaflow_engine.plan.explain.explanation import TablePart
from kaflow_engine.plan.planner.pipeline_plan import build_plan
from kaflow_engine.telemetry.progress import Progress
from tests.engine.runtime.stream_here import write_stream

pytestmark = pytest.mark.slow

ROOT = Path(__file__).parents[2]
DAY = 86_400_000
START = 1_767_225_600_000
KEY = dg.AssetKey(["tables", "kept"])
FILE = """
name: keeper
query: SELECT id, n FROM {topic}
output: {{table: kept}}
owners: [shop]
backfill: {{start: 2025-01-01, schedule: "30 5 * * *"}}
checks:
  - not_null: id
  - expect_column_values_to_be_between: {{column: n, min_value: 0, max_value: 37}}
    name: few
    severity: warn
topics:
  {topic}: {{columns: {{id: VARCHAR, n: BIGINT}}}}
"""
RUN = """
import sys
from pathlib import Path
import dagster as dg
from dagster_pyspark import LazyPySparkResource
from kaflow_dagster.build import build_kaflow_defs
home, file, config, first, last = sys.argv[1:]
spark = dg.Definitions(
    resources={"lake": LazyPySparkResource(spark_config={"spark.master": "local[1]"})}
)
kaflow = build_kaflow_defs([Path(file)], Path(config), pyspark="lake")
found = dg.Definitions.merge(kaflow, spark).get_repository_def()
tags = {"dagster/asset_partition_range_start": first, "dagster/asset_partition_range_end": last}
with dg.DagsterInstance.from_config(home) as instance:
    job = found.get_job("backfill__keeper_job")
    forced = {"ops": {"backfill__keeper": {"config": {"force": True}}}}  # there is no stream
    done = job.execute_in_process(forced, instance=instance, tags=tags, raise_on_error=False)
sys.exit(0 if done.success else 3)
"""


def project(path, topic, more=""):
    (path / "p.yaml").write_text(FILE.format(topic=topic))
    (path / "kaflow.yaml").write_text(f"warehouse: {path}/warehouse\n{more}")
    return build_kaflow_defs([path / "p.yaml"], path / "kaflow.yaml")


def test_asset(tmp_path):
    defs = project(tmp_path, "numbers")
    dg.Definitions.validate_loadable(defs)
    spec = next(s for s in defs.resolve_all_asset_specs() if s.key == KEY)
    assert isinstance(spec.partitions_def, dg.DailyPartitionsDefinition)
    assert spec.partitions_def.get_first_partition_key() == "2025-01-01"
    assert [dep.asset_key for dep in spec.deps] == [dg.AssetKey(["streams", "keeper"])]
    assert (spec.group_name, spec.kinds, spec.owners) == (
        tmp_path.name,
        {"deltalake"},
        ["team:shop"],
    )
    assert spec.metadata["dagster/uri"] == f"{tmp_path}/warehouse/kept"
    columns = spec.metadata["dagster/column_schema"].columns
    assert [(column.name, column.type) for column in columns] == [
        ("id", "VARCHAR"),
        ("n", "BIGINT"),
    ]
    assert {job.name for job in defs.resolve_all_job_defs()} >= {"stream__keeper"}
    assert defs.resolve_job_def("backfill__keeper_job").partitions_def == spec.partitions_def


def test_a_schedule_fills_the_partition_that_has_settled(tmp_path):
    state = f"state: {{rocksdb: {{path: {tmp_path}/state}}}}\n"
    defs = project(tmp_path, "numbers", state).get_repository_def()
    schedule = defs.get_schedule_def("fill__keeper")
    assert (schedule.cron_schedule, schedule.execution_timezone) == ("30 5 * * *", "UTC")

    def asked(at):
        with dg.build_schedule_context(scheduled_execution_time=at, repository_def=defs) as context:
            found = schedule.evaluate_tick(context)
        return found.skip_message or [request.partition_key for request in found.run_requests]

    now = datetime(2026, 1, 5, 5, 30, tzinfo=UTC)
    assert "there is no state of the stream of pipeline 'keeper'" in asked(now)
    query = "SELECT id, n FROM numbers"
    spec = PipelineSpec.model_validate(
        {"name": "keeper", "query": query, "output": {"table": "kept"}}
    )
    columns = {"numbers": (Column("id", "VARCHAR"), Column("n", "BIGINT"))}
    plan, mark = build_plan(spec, Config(), columns).plan, START + 3 * DAY - 1
    write_stream(tmp_path / "state" / "keeper", plan, mark, mark)
    assert asked(now) == ["2026-01-02"]  # the stream is behind
    assert asked(datetime(2026, 1, 2, 5, 30, tzinfo=UTC)) == ["2026-01-01"]
    before = "the newest partition that has settled is 2024-12-31"
    assert asked(datetime(2025, 1, 1, 5, 30, tzinfo=UTC)) == before


def test_settings_of_a_resource_go_over_the_configuration():
    from dagster_pyspark import LazyPySparkResource, PySparkResource

    config = Config.model_validate({"spark": {"conf": {"a.b": "1", "c": "2"}}})
    nested = {"spark": {"master": "local[3]"}, "a": {"b": 5}, "d.e": "6"}
    found = with_spark(config, spark_settings(LazyPySparkResource(spark_config=nested))).spark
    assert (found.master, found.conf) == ("local[3]", {"a.b": "5", "c": "2", "d.e": "6"})
    with pytest.raises(dg.Failure, match="has started a session already"):
        spark_settings(PySparkResource(spark_config={}))


SCHEMA = pa.schema([("id", pa.int64()), ("_day", pa.string())])


def kept_in(folder, name="kept"):
    """Return a table as a plan names it, whose first partition is the second of January."""
    start = date(2026, 1, 2)
    return TablePart(
        name=name, path=str(folder), partition="day", interval=1, start=start, schedule=None
    )


def test_partitions_close_as_their_own_table_is_settled(tmp_path):
    """Of two tables of one pipeline one follows a topic that is ahead."""
    tables = []
    for name in ("ahead", "behind"):
        rows = pa.table([[1], ["2026-01-02"]], schema=SCHEMA)
        sink = DeltaSink(tmp_path / name, SCHEMA, "_day", "w")
        sink.add(1, write_files(tmp_path / name, "_day", rows, "1"))
        tables.append((dg.AssetKey(name), kept_in(tmp_path / name, name)))
    assets = PipelineAssets(stream=KEY, outputs=(), tables=tuple(tables))
    with dg.DagsterInstance.ephemeral() as instance:
        reports = Reports(instance, assets, OutputReports(instance, "run", 0, None))
        for days, closed in ((1, []), (3, ["ahead"]), (4, [])):
            settled = {"ahead": START + days * DAY, "behind": START + DAY}
            progress = Progress(pipeline="p", watermark=START + DAY, settled=settled)
            found = [event.asset_key.to_user_string() for event in reports.closed(progress)]
            assert found == closed


def test_closed_partitions_are_reported_once(tmp_path):
    sink = DeltaSink(tmp_path, SCHEMA, "_day", "w")
    table = kept_in(tmp_path)
    closed = ClosedPartitions(KEY, table, {"2026-01-03"})

    def add(batch, *days):
        rows = pa.table([range(len(days)), days], schema=SCHEMA)
        sink.add(batch, write_files(tmp_path, "_day", rows, str(batch)))

    def reported(at):
        return [
            (event.partition, event.metadata["dagster/partition_row_count"].value)
            for event in closed.since(at)
        ]

    add(1, "2026-01-01", "2026-01-02", "2026-01-02", "2026-01-03", "2026-01-04")
    assert reported(None) == []
    assert reported(START + 1 * DAY) == []  # the first is before the asset's first partition
    assert reported(START + 3 * DAY + 5) == [("2026-01-02", 2)]  # the third was known
    assert reported(START + 3 * DAY + 9) == []
    assert reported(START + 4 * DAY) == [("2026-01-04", 1)]


@pytest.mark.spark
@pytest.mark.kafka
def test_one_run_fills_a_year_of_partitions(broker, unique, tmp_path):
    topic = f"{unique}_in"
    create_topic(broker.settings, topic, 2, {"retention.ms": "-1"})
    producer = open_producer(broker.settings).api
    for n in range(40):
        value = b'{"id":"i%d","n":%d}' % (n, n)
        producer.produce(topic, value, partition=n % 2, timestamp=START + n * DAY // 10)
    assert producer.flush(30) == 0
    brokers = f'kafka: {{brokers: ["{broker.bootstrap}"]}}\n'
    project(tmp_path, topic, f"{brokers}state: {{rocksdb: {{path: {tmp_path}/state}}}}\n")
    (tmp_path / "home").mkdir()
    (tmp_path / "home" / "dagster.yaml").write_text("telemetry: {enabled: false}\n")
    done = filled(tmp_path, "2025-06-01", "2026-05-31")
    assert done.returncode == 0, done.stderr[-3000:]
    with dg.DagsterInstance.from_config(str(tmp_path / "home")) as instance:
        keys = instance.get_materialized_partitions(KEY)
        event = instance.get_latest_materialization_event(KEY).asset_materialization
        results = {name: _last(instance, name) for name in ("not_null_id", "few")}
    assert (len(keys), min(keys), max(keys)) == (365, "2025-06-01", "2026-05-31")
    assert event.metadata["kaflow/mode"].value == "backfill"
    assert {name: each.passed for name, each in results.items()} == {
        "not_null_id": True,
        "few": False,
    }
    assert results["few"].severity == dg.AssetCheckSeverity.WARN
    numbers = {name: value.value for name, value in results["few"].metadata.items()}
    assert (numbers["kaflow/rows"], numbers["kaflow/failed"]) == (40, 2)
    sample = results["few"].metadata["kaflow/sample"].records
    assert sorted(row.data["n"] for row in sample) == [38, 39]
    found = DeltaTable(str(tmp_path / "warehouse" / "kept")).to_pyarrow_table().to_pylist()
    assert sorted(row["n"] for row in found) == list(range(40))

    strict = (tmp_path / "p.yaml").read_text().replace("severity: warn", "severity: error")
    (tmp_path / "p.yaml").write_text(strict)
    done = filled(tmp_path, "2026-01-04", "2026-01-04")
    assert done.returncode == 3
    assert "1 blocking asset check failed with ERROR severity:\ntables/kept: few" in done.stderr


def filled(path, first, last):
    """Run a backfill of partitions."""
    arguments = [path / name for name in ("home", "p.yaml", "kaflow.yaml")]
    return subprocess.run(
        [sys.executable, "-c", RUN, *map(str, arguments), first, last],
        env={**os.environ, "PYTHONPATH": os.pathsep.join([str(ROOT), str(ROOT / "engine")])},
        capture_output=True,
        text=True,
        timeout=600,
        check=False,
    )


def _last(instance, name):
    """Return the last evaluation of a check."""
    storage = instance.event_log_storage
    (record,) = storage.get_asset_check_execution_history(dg.AssetCheckKey(KEY, name), limit=1)
    return record.event.dagster_event.event_specific_data
