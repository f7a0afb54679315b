"""The tasks that Spark's Python workers run."""

import pickle
from collections.abc import Callable, Generator, Iterator
from contextlib import contextmanager
from functools import lru_cache

import pyarrow as pa
from pyspark import TaskContext

from kaflow_engine.errors import RunError
from kaflow_engine.flow.graph import last_level
from kaflow_engine.flow.records import OUTPUT, RECORDS
from kaflow_engine.operators.levels import run_level
from kaflow_engine.operators.rows.reports import report_rows
from kaflow_engine.operators.rows.shuffle_codec import of_streams, to_stream, to_streams
from kaflow_engine.operators.rows.task import BatchContext
from kaflow_engine.plan.planner.functions import require_functions
from kaflow_engine.runtime.failures.error_wire import SECRET
from kaflow_engine.runtime.failures.failures import carried
from kaflow_engine.runtime.tasks.memory import keep_or_release, settle_in
from kaflow_engine.runtime.tasks.orphans import watch_parent
from kaflow_engine.runtime.tasks.settings import TaskSettings
from kaflow_engine.runtime.tasks.shared_store import check_shared
from kaflow_engine.runtime.tasks.worker import WorkerTask
from kaflow_engine.telemetry.traces import traceparents

Batches = Iterator[pa.RecordBatch]
Given = tuple[int, bytes]
"""What a task gives: the number of the task that it is for, or what it is, and bytes."""
Data = bytes | pa.Buffer
"""Those bytes as another task takes them."""
REPORTED, ROWS = range(2)
"""What the last tasks give, as Arrow streams: reports (EXCHANGE), and rows (OUTPUT)."""


def whole_task(settings: bytes, batch: BatchContext, batches: Batches) -> Iterator[Given]:
    """Run all levels over raw records."""
    with begun(settings, batch.batch) as (found, _):
        with WorkerTask(found, batch, range(found.plan.partitions)) as task:
            with task.timed("read"):
                records = _records(batches)
            with task.timed("run"):
                reports = records
                for level in range(last_level(found.plan) + 1):
                    reports = _run(found, level, batch, reports, task)
        result, read = _result(task, reports), records.num_rows
        del records, reports
    yield from result
    del result
    keep_or_release(read, task.changed, more=batch.more)
    settle_in()


def first_task(
    settings: bytes, batch: BatchContext, tasks: int, batches: Batches
) -> Iterator[Given]:
    """Run the first level over raw records, for `tasks` tasks of the next one."""
    yield from _level(settings, batch, 0, tasks, lambda: _records(batches))


def level_task(
    settings: bytes, batch: BatchContext, level: int, tasks: int, streams: Iterator[Data]
) -> Iterator[Given]:
    """Run another level over the rows that were sent to one of `tasks` tasks."""
    yield from _level(settings, batch, level, tasks, lambda: of_streams(streams))


def _level(
    settings: bytes, batch: BatchContext, level: int, tasks: int, source: Callable[[], pa.Table]
) -> Iterator[Given]:
    with begun(settings, batch.batch) as (found, number):
        last = last_level(found.plan)
        own = range(number, found.plan.partitions, tasks) if level else ()
        with WorkerTask(found, batch, own) as task:
            with task.timed(f"read.{level}"):
                rows = source()
            read = rows.num_rows
            with task.timed(f"run.{level}"):
                rows = _run(found, level, batch, rows, task)
        if level == last:
            out = _result(task, rows)
        else:
            notes = report_rows([{"note": note} for note in task.notes()])
            out = list(to_streams(pa.concat_tables([rows, notes]), tasks))
    yield from out
    del rows, out
    keep_or_release(read, task.changed, more=batch.more)
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
    found = [batch for batch in batches if batch.num_rows]
    if not found:
        return RECORDS.empty_table()
    table = pa.Table.from_batches(found).select(RECORDS.names).cast(RECORDS)
    topics = table.column("topic")
    return table.filter(topics.is_valid()) if topics.null_count else table


def _result(task: WorkerTask, reports: pa.Table) -> list[Given]:
    notes = report_rows([{"note": note} for note in task.notes()])
    given = [(REPORTED, to_stream(pa.concat_tables([reports, notes])))]
    if task.output:
        given.append((ROWS, to_stream(pa.concat_tables([OUTPUT.empty_table(), *task.output]))))
    return given
