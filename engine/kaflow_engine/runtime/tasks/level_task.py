"""The functions that Spark's `mapInArrow` calls in its Python workers."""

import pickle
from collections.abc import Generator, Iterator
from contextlib import contextmanager
from functools import lru_cache

import pyarrow as pa
from pyspark import TaskContext

from kaflow_engine.errors import RunError
from kaflow_engine.flow.graph import last_level
from kaflow_engine.flow.records import OUTPUT, RECORDS
from kaflow_engine.operators.levels import run_level
from kaflow_engine.operators.rows.reports import report_rows
from kaflow_engine.operators.rows.shuffle_codec import WIRE, of_wire, to_wire
from kaflow_engine.operators.rows.task import BatchContext
from kaflow_engine.plan.planner.functions import require_functions
from kaflow_engine.runtime.failures.error_wire import SECRET
from kaflow_engine.runtime.failures.failures import carried
from kaflow_engine.runtime.tasks.memory import release, release_now_and_then, settle_in
from kaflow_engine.runtime.tasks.orphans import watch_parent
from kaflow_engine.runtime.tasks.settings import TaskSettings
from kaflow_engine.runtime.tasks.shared_store import check_shared
from kaflow_engine.runtime.tasks.worker import WorkerTask
from kaflow_engine.telemetry.traces import traceparents

RESULT = pa.schema([pa.field("reports", pa.binary()), pa.field("output", pa.binary())])
"""What a task of the last level returns, in one row: Arrow streams of EXCHANGE and of OUTPUT."""

_CHUNK = 50_000
_LARGE = 50_000
"""Rows from which on a task leaves much memory behind."""

Batches = Iterator[pa.RecordBatch]


def whole_task(settings: bytes, batch: BatchContext, batches: Batches) -> Batches:
    """Run all levels over raw records."""
    with begun(settings, batch.batch) as (found, _):
        with WorkerTask(found, batch, range(found.plan.partitions)) as task:
            with task.timed("read"):
                records = _records(batches)
            with task.timed("run"):
                reports = records
                for level in range(last_level(found.plan) + 1):
                    reports = _run(found, level, batch, reports, task)
        result = _result(task, reports)
        large = records.num_rows > _LARGE
    yield result
    if large:
        del records, reports, result
        release()
    release_now_and_then()
    settle_in()


def level_task(
    settings: bytes, batch: BatchContext, level: int, tasks: int, batches: Batches
) -> Batches:
    """Run one level over the rows that were sent to one of `tasks` tasks."""
    with begun(settings, batch.batch) as (found, number):
        last = last_level(found.plan)
        own = range(number, found.plan.partitions, tasks) if level else ()
        with WorkerTask(found, batch, own) as task:
            with task.timed(f"read.{level}"):
                rows = _rows(batches) if level else _records(batches)
            large = rows.num_rows > _LARGE
            with task.timed(f"run.{level}"):
                rows = _run(found, level, batch, rows, task)
        if level == last:
            out = [_result(task, rows)]
        else:
            notes = report_rows([{"note": note} for note in task.notes()])
            out = to_wire(pa.concat_tables([rows, notes])).to_batches(max_chunksize=_CHUNK)
    yield from out
    if large:
        del rows, out
        release()
    release_now_and_then()
    settle_in()


def _run(
    settings: TaskSettings, level: int, batch: BatchContext, rows: pa.Table, task: WorkerTask
) -> pa.Table:
    if level == 0:
        task.passing("before_map")
        if settings.traced:
            task.note(traceparents=traceparents(rows, settings.traced))
    with task.level(level, rows.num_rows):
        found = run_level(settings.plan, level, batch, rows, task)
    if level == 0:
        task.passing("mapped")
    return found


@contextmanager
def begun(settings: bytes, batch: int) -> Generator[tuple[TaskSettings, int]]:
    """Give the settings and the number of this task; what goes wrong reaches the driver whole.

    Raises:
        RuntimeError: Carries the error of the block, or says that Spark tries the task once more,
            or that this host has another state directory than the driver.
    """
    watch_parent()
    try:
        context = TaskContext.get()
        attempt = 0 if context is None else context.attemptNumber()
        if attempt > 0:
            # Spark repeats the tasks of lost executors, and a second try could deliver twice
            raise RunError(f"Spark repeats a task of batch {batch} (attempt {attempt + 1})")
        yield _settings(settings), 0 if context is None else context.partitionId()
    except Exception as error:
        raise carried(error, settings[: len(SECRET)].decode("ascii", "replace")) from None


@lru_cache(maxsize=8)
def _settings(settings: bytes) -> TaskSettings:
    found: object = pickle.loads(settings[len(SECRET) :])
    assert isinstance(found, TaskSettings)
    if found.copies is not None:
        check_shared(found.directory, found.state)
    require_functions(found.plan, found.functions)
    return found


def _records(batches: Batches) -> pa.Table:
    """Return all records of a task; a record without a topic only makes Spark run the task."""
    table = _table(batches, RECORDS)
    topics = table.column("topic")
    return table.filter(topics.is_valid()) if topics.null_count else table


def _rows(batches: Batches) -> pa.Table:
    return of_wire(_table(batches, WIRE))


def _table(batches: Batches, schema: pa.Schema) -> pa.Table:
    found = [batch for batch in batches if batch.num_rows]
    if not found:
        return schema.empty_table()
    return pa.Table.from_batches(found).select(schema.names).cast(schema)


def _result(task: WorkerTask, reports: pa.Table) -> pa.RecordBatch:
    notes = report_rows([{"note": note} for note in task.notes()])
    output = pa.concat_tables([OUTPUT.empty_table(), *task.output])
    streams = [to_stream(pa.concat_tables([reports, notes])), to_stream(output)]
    return pa.record_batch([pa.array([data], pa.binary()) for data in streams], schema=RESULT)


def to_stream(table: pa.Table) -> bytes:
    """Return a table as an Arrow stream."""
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, table.schema) as writer:
        writer.write_table(table)
    return sink.getvalue().to_pybytes()


def of_stream(data: bytes) -> pa.Table:
    """Return the table of an Arrow stream."""
    return pa.ipc.open_stream(pa.py_buffer(data)).read_all()
