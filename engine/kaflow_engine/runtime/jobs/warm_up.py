"""Starts Spark's Python workers before the first batch needs them."""

from collections.abc import Iterator, Sequence
from contextlib import suppress
from threading import Thread

from pyspark.sql import SparkSession

from kaflow_engine.connectors.sources.contract import RangeRead
from kaflow_engine.runtime.jobs.jobs import RangeJob
from kaflow_engine.runtime.tasks.level_task import Batches, Given


def warm_up(session: SparkSession, tasks: int) -> None:
    """Run a job of so many tasks that do nothing, while whoever calls goes on."""
    Thread(target=_run, args=(session, tasks), name="kaflow-warm-up", daemon=True).start()


def _nothing(batches: Batches) -> Iterator[Given]:
    yield from ((0, b"") for _ in batches)


def _run(session: SparkSession, tasks: int) -> None:
    none: Sequence[RangeRead] = ()
    with suppress(Exception):  # what is wrong ends the first batch, which says so
        RangeJob.over(session.sparkContext, [none] * tasks, _nothing).collect()
