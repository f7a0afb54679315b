"""Runs one batch on Spark: in one task where that is enough, else with an exchange per level."""

import pickle
from collections.abc import Iterable
from dataclasses import dataclass
from functools import partial

import pyarrow as pa

from kaflow_engine.flow.flow import Flow
from kaflow_engine.flow.graph import has_exchange, last_level, levels, state_names
from kaflow_engine.flow.records import OUTPUT
from kaflow_engine.flow.timed import Runs
from kaflow_engine.flow.transforms import Transform
from kaflow_engine.operators.rows.reports import BatchReport, read_reports
from kaflow_engine.operators.rows.schemas import EXCHANGE
from kaflow_engine.operators.rows.shuffle_codec import of_stream
from kaflow_engine.operators.rows.task import BatchContext
from kaflow_engine.runtime.failures.error_wire import SECRET
from kaflow_engine.runtime.jobs.records import InTasks, Records, in_one, in_resident, in_several
from kaflow_engine.runtime.jobs.resident import ResidentTask
from kaflow_engine.runtime.tasks.level_task import (
    REPORTED,
    ROWS,
    Given,
    first_task,
    level_task,
    whole_task,
)
from kaflow_engine.runtime.tasks.settings import TaskSettings

SMALL = 20_000
"""Records up to which one task is faster than several with an exchange between them."""

_SOON_READ = ("json", "raw")
"""Formats of values that are read faster than an exchange takes."""

_READING = 4
"""Tasks that read, for each that runs at once: more take longer to begin than they spare waiting,
fewer hold more records."""

ALL_TASKS = -1
"""In place of SMALL: several tasks also without any records, as tables may be large."""


@dataclass(frozen=True, slots=True)
class Executed:
    """What a batch did, and its rows where no sink took them."""

    report: BatchReport
    output: pa.Table
    """Schema OUTPUT; empty where there is a sink."""


@dataclass(frozen=True, slots=True)
class Shipment:
    """The settings of a run in the form in which they travel with each task."""

    settings: TaskSettings
    data: bytes
    """The driver's secret, which marks the errors of its tasks, and the settings behind it."""

    @property
    def epoch(self) -> int:
        """The epoch of the run."""
        return self.settings.epoch

    @staticmethod
    def of(settings: TaskSettings) -> "Shipment":
        """Pack settings once, for many batches."""
        return Shipment(settings, SECRET.encode() + pickle.dumps(settings))


def execute_batch(
    records: Records,
    batch: BatchContext,
    shipment: Shipment,
    size: int,
    tasks: int,
    small: int = SMALL,
    resident: ResidentTask | None = None,
) -> Executed:
    """Run a batch and return what it reported.

    Args:
        records: Columns of RECORDS; a partition for each source partition, in offset order.
        batch: Which batch.
        shipment: What each task must know.
        size: About how many records there are.
        tasks: How many tasks may run at once.
        small: Up to how many records one task does it all.
        resident: A task that may stay for the batches behind this one; None: none does.
    """
    plan, data = shipment.settings.plan, shipment.data
    if is_one_task(plan, records, size, tasks, small):
        whole = partial(whole_task, data, batch)
        if resident is not None and isinstance(records, InTasks):
            return executed(resident.run(in_resident(records, whole)))
        return executed(in_one(records, whole).collect())
    if resident is not None:
        resident.leave()  # all slots are wanted
    width = min(tasks, plan.partitions)
    job = in_several(records, partial(first_task, data, batch, width), _READING * tasks)
    for level in range(1, last_level(plan) + 1):
        job = job.exchanged(width, partial(level_task, data, batch, level, width))
    return executed(job.collect())


def is_one_task(plan: Flow, records: Records, size: int, tasks: int, small: int) -> bool:
    """Tell whether one task takes a batch through all levels; the rows are the same.

    A small batch is not worth an exchange. Nor are the records of a single range where nothing is
    kept by key: other tasks would only write what one has made. Nor are rows that all go to one
    writer, and are soon read: it would wait until the others have read.
    """
    if size <= small or tasks == 1:
        return True
    if not isinstance(records, InTasks):
        return False
    return (len(records.reads) == 1 and not state_names(plan)) or _has_one_writer(plan)


def _has_one_writer(plan: Flow) -> bool:
    """Tell whether rows that travel first make runs, which are not those of each partition.

    Whatever takes longer than JSON before they travel is worth several tasks.
    """
    by_id = levels(plan)
    if any(source.format not in _SOON_READ for source in plan.sources):
        return False
    if any(isinstance(n, Transform) and by_id[n.id] == 0 for n in plan.operators):
        return False
    nodes = [n for n in (*plan.operators, *plan.sinks) if has_exchange(n) and by_id[n.id] == 1]
    return bool(nodes) and all(isinstance(n, Runs) and not n.per_partition for n in nodes)


def executed(given: Iterable[Given]) -> Executed:
    """Return what the last tasks of a batch gave."""
    found: dict[int, list[pa.Table]] = {REPORTED: [], ROWS: []}
    for kind, data in given:
        found[kind].append(of_stream(data))
    return Executed(
        read_reports(pa.concat_tables([EXCHANGE.empty_table(), *found[REPORTED]])),
        pa.concat_tables([OUTPUT.empty_table(), *found[ROWS]]),
    )
