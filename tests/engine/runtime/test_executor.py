import os
from dataclasses import replace
from unittest.mock import Mock

import pyarrow.compute as pc
import pytest

from kaflow_engine.errors import KaflowError
from kaflow_engine.operators.rows.task import BatchContext
from kaflow_engine.runtime.batch.task_metrics import changes_of
from kaflow_engine.runtime.case_executor import CaseSession
from kaflow_engine.runtime.failures.error_wire import SECRET
from kaflow_engine.runtime.failures.failures import TaskFailed, to_error
from kaflow_engine.runtime.jobs import records as records_module
from kaflow_engine.runtime.jobs.executor import (
    SMALL,
    Shipment,
    execute_batch,
)
from kaflow_engine.runtime.jobs.jobs import RangeJob
from kaflow_engine.runtime.jobs.records import InTasks, no_records, records_of_table
from kaflow_engine.runtime.jobs.resident import ResidentTask
from kaflow_engine.runtime.tasks.settings import TaskSettings
from kaflow_engine.state.reader import StateRef
from kaflow_engine.state.storage.store import LocalStore
from kaflow_engine.testing.local.executor import LocalPipeline
from tests.engine.runtime.plans_here import filter_plan, lookup_plan
from tests.engine.runtime.records_here import records

pytestmark = pytest.mark.spark

PLAN = lookup_plan("p", "events", "profiles", "out")
EVENTS = records("events", [{"id": f"u{i % 7}", "n": str(i)} for i in range(3000)])
PROFILES = records("profiles", [{"id": f"u{i}", "tier": f"t{i}"} for i in range(5)])
CONTEXT = BatchContext(batch=1, batch_time=5000, watermarks={}, epoch=1)


def shipment(directory):
    return Shipment.of(
        TaskSettings(
            plan=PLAN,
            directory=directory,
            state=StateRef("s", 1),
            epoch=1,
            snapshots=LocalStore(directory),
            sink=None,
            driver=os.getpid(),
        )
    )


def test_one_task_and_many_tasks_do_the_same(spark, tmp_path):
    frame = spark.createDataFrame(EVENTS).repartitionByRange(3, "offset")
    small = execute_batch(frame, CONTEXT, shipment(tmp_path), 1, 2)
    large = execute_batch(frame, CONTEXT, shipment(tmp_path), SMALL + 1, 2)
    assert sorted(small.output["value"].to_pylist()) == sorted(large.output["value"].to_pylist())
    assert small.report.counters == large.report.counters == {"emitted": 3000, "read": 3000}
    assert changes_of(small.report) == changes_of(large.report)


def test_a_single_range_needs_no_exchange(spark, tmp_path):
    plan = filter_plan("p", "events", "out")
    shipped = Shipment.of(replace(shipment(tmp_path).settings, plan=plan))

    def execute(*tables):
        reads = tuple(table.to_batches for table in tables)
        return execute_batch(InTasks(spark, reads), CONTEXT, shipped, SMALL + 1, 2)

    one, two = execute(EVENTS), execute(EVENTS.slice(0, 1000), EVENTS.slice(1000))
    assert one.report.counters == two.report.counters == {"emitted": 3000, "read": 3000}
    for slot in range(plan.partitions):  # the rows of a marker, and their order
        found = [done.output.filter(pc.equal(done.output["slot"], slot)) for done in (one, two)]
        assert found[0].num_rows
        assert found[0].equals(found[1])


def test_many_ranges_are_read_by_few_tasks(spark, tmp_path, monkeypatch):
    widths = []

    def over(context, reads, task):
        widths.append(len(reads))
        return RangeJob.over(context, reads, task)

    monkeypatch.setattr(records_module, "RangeJob", Mock(over=over))

    def execute(count):
        size = -(-EVENTS.num_rows // count)
        slices = (EVENTS.slice(n * size, size) for n in range(count))
        reads = tuple(each.to_batches for each in slices)
        return execute_batch(InTasks(spark, reads), CONTEXT, shipment(tmp_path), SMALL + 1, 2)

    few, many = execute(3), execute(11)
    assert widths == [3, 8]
    assert few.report.counters == many.report.counters == {"emitted": 3000, "read": 3000}
    for slot in range(PLAN.partitions):
        found = [done.output.filter(pc.field("slot") == slot) for done in (few, many)]
        assert found[0].num_rows
        assert found[0].equals(found[1])


def test_a_batch_without_records_runs(spark, tmp_path):
    done = execute_batch(no_records(spark), CONTEXT, shipment(tmp_path), 0, 2)
    assert (done.output.num_rows, done.report.counters) == (0, {})


@pytest.fixture
def resident(spark):
    found = ResidentTask(spark.sparkContext)
    yield found
    found.close()


def test_a_resident_task_does_what_a_job_does(spark, tmp_path, resident):
    def execute(name, size, *how):
        return execute_batch(records_of_table(spark, EVENTS), CONTEXT, name, size, 2, SMALL, *how)

    alone = execute(shipment(tmp_path / "alone"), 3000)
    for number, size in enumerate([3000, 3000, SMALL + 1, 3000]):
        done = execute(shipment(tmp_path / str(number)), size, resident)
        for slot in range(PLAN.partitions):
            both = [each.output.filter(pc.field("slot") == slot) for each in (alone, done)]
            assert both[0].equals(both[1])
        assert done.report.counters == alone.report.counters == {"emitted": 3000, "read": 3000}
        assert changes_of(done.report) == changes_of(alone.report)


@pytest.mark.parametrize("stays", [False, True])
def test_what_fails_in_a_task_is_told_in_one_line(spark, tmp_path, resident, stays):
    records = records_of_table(spark, EVENTS)
    broken = Shipment(shipment(tmp_path).settings, SECRET.encode() + b"no pickle")
    with pytest.raises(Exception) as raised:  # noqa: PT011  # whatever Spark raises
        execute_batch(records, CONTEXT, broken, 1, 2, SMALL, resident if stays else None)
    error = to_error(raised.value)
    assert isinstance(error, TaskFailed)
    assert isinstance(error, KaflowError)
    assert error.message.startswith("a task failed: UnpicklingError")
    assert "\n" not in error.message


@pytest.mark.parametrize("spread", [False, True])
def test_a_case_on_spark_gives_what_the_local_executor_gives(spark, spread):
    plan = lookup_plan("p", "events", "profiles", "out", smart=True)
    partitions = {"events": [0], "profiles": [0]}
    batches = (EVENTS.slice(0, 9), PROFILES, EVENTS.slice(9, 6))
    local = LocalPipeline(plan, partitions)
    session = CaseSession(spark, plan, partitions, replay=True, schemas={}, spread=spread)
    for batch in batches:
        same(local.run(batch, 5000), session.run(batch, 5000))
    same(local.end(6000), session.end(6000))
    session.close()


def same(local, other):
    assert sorted(local.output["value"].to_pylist()) == sorted(other.output["value"].to_pylist())
    assert dict(local.counters) == dict(other.counters)


def test_workers_begin_with_the_engine_loaded(spark):
    def loaded(batches):
        import sys

        import pyarrow as pa

        for batch in batches:
            found = "kaflow_engine.operators.levels" in sys.modules
            yield pa.RecordBatch.from_pydict({"loaded": [found] * batch.num_rows})

    rows = spark.range(2).mapInArrow(loaded, "loaded boolean").collect()
    assert [row["loaded"] for row in rows] == [True, True]
