"""Which batches one task takes through all levels."""

from collections.abc import Iterator
from typing import cast

import pyarrow as pa
import pytest
from pyspark.sql import DataFrame, SparkSession

from kaflow_engine.flow.flow import Flow
from kaflow_engine.runtime.jobs.executor import is_one_task
from kaflow_engine.runtime.jobs.records import InTasks, Records
from tests.engine.runtime.plans_here import counts_plan, filter_plan, lookup_plan

FILTER = filter_plan("p", "events", "out")
LOOKUP = lookup_plan("p", "events", "profiles", "out")
COUNTS = counts_plan("p", "events", "out")
COUNTS_OF_EACH = counts_plan("p", "events", "out", per="partition")
COUNTS_OF_AVRO = counts_plan("p", "events", "out", form="avro")
ASKED = {"type": "handler", "from": "events", "url": "http://h/", "schema": {"n": "VARCHAR"}}
COUNTS_OF_ASKED = counts_plan("p", "events", "out", relations={"asked": ASKED})
FRAME = cast("DataFrame", None)
SPARK = cast("SparkSession", None)


def _read() -> Iterator[pa.RecordBatch]:
    yield from ()


def ranges(count: int) -> Records:
    return InTasks(SPARK, (_read,) * count)


@pytest.mark.parametrize(
    ("plan", "records", "size", "tasks", "expected"),
    [
        pytest.param(LOOKUP, ranges(2), 10, 2, True, id="small"),
        pytest.param(LOOKUP, ranges(2), 11, 2, False, id="large"),
        pytest.param(LOOKUP, ranges(2), 11, 1, True, id="one processor"),
        pytest.param(FILTER, ranges(2), 11, 2, False, id="several ranges by key"),
        pytest.param(FILTER, ranges(1), 11, 2, True, id="one range, nothing kept"),
        pytest.param(LOOKUP, ranges(1), 11, 2, False, id="one range, and a state"),
        pytest.param(COUNTS, ranges(2), 11, 2, True, id="runs of all partitions"),
        pytest.param(COUNTS_OF_EACH, ranges(2), 11, 2, False, id="runs of each partition"),
        pytest.param(COUNTS_OF_AVRO, ranges(2), 11, 2, False, id="runs of Avro"),
        pytest.param(COUNTS_OF_ASKED, ranges(2), 11, 2, False, id="runs behind a service"),
        pytest.param(FILTER, FRAME, 11, 2, False, id="a frame of Spark's"),
        pytest.param(COUNTS, FRAME, 11, 2, False, id="a frame of Spark's, and runs"),
    ],
)
def test_one_task(plan: Flow, records: Records, size: int, tasks: int, expected: bool) -> None:
    assert is_one_task(plan, records, size, tasks, small=10) is expected
