"""The page about when rows leave: what its tables say is measured here, and its cases are run."""
# pyright: basic

import json
import re
from collections import defaultdict
from dataclasses import dataclass
from functools import cache
from statistics import median

import pyarrow as pa
import pytest
import yaml

from kaflow_engine.errors import Location
from kaflow_engine.flow.operators import Aggregate
from kaflow_engine.flow.records import RECORDS, ROW
from kaflow_engine.model.config import Config
from kaflow_engine.model.durations import format_duration
from kaflow_engine.model.pipelines.loader import load_pipeline, pipeline_from_mapping
from kaflow_engine.plan.planner.pipeline_plan import build_plan, declared_columns
from kaflow_engine.testing.cases.cases import run_case
from kaflow_engine.testing.cases.executor import LocalExecutor
from kaflow_engine.testing.cases.files import load_cases
from kaflow_engine.testing.cases.pipeline import Surroundings
from kaflow_engine.testing.cases.report import report_lines
from kaflow_engine.testing.local.executor import LocalPipeline
from tests.page import DOCS, blocks, commands
from tests.test_readme import ROOT

pytestmark = pytest.mark.slow

PAGE = "when-rows-leave.md"
CASES = "tests/engine/testing/cases/when_rows_leave.yaml"
MEASURED = "delay, median"
"""A column of the tables that are measured."""

SECOND, MINUTE = 1_000, 60_000
START = 1_767_225_600_000
BATCH = 30 * SECOND
ORDERS, EVERY = 340, 1_500
SHOWN = 100
"""The first orders; the others keep the watermark moving until none of these waits."""
LATE = {6: 45 * SECOND, 7: 2 * MINUTE, 8: 4 * MINUTE, 9: 10 * MINUTE}
"""By the last digit of an order: how long after it its customer comes; others come a minute
before it."""


@dataclass(frozen=True, kw_only=True)
class Left:
    """A row of one of the shown orders that left."""

    order: int
    complete: bool
    delay: int
    """Milliseconds from the time of its order to the end of the batch."""


def records():
    """Return (time, topic, key, value) of all records, in the order of time."""
    found = []
    for order in range(ORDERS):
        time, customer = START + order * EVERY, f"c{order}"
        there = time + LATE.get(order % 10, -MINUTE)
        found.append((time, "orders", str(order), {"order_id": order, "customer_id": customer}))
        found.append((there, "customers", customer, {"customer_id": customer, "country": "NL"}))
    return sorted(found, key=lambda record: record[0])


@cache
def batches():
    """Return (end, records) of each batch, until the last order."""
    offsets, found = defaultdict(int), defaultdict(list)
    for time, topic, key, value in records():
        row = {"topic": topic, "partition": 0, "offset": offsets[topic], "timestamp": time}
        row |= {"key": key.encode(), "value": json.dumps(value).encode(), "headers": []}
        found[time - time % BATCH + BATCH].append(row)
        offsets[topic] += 1
    ends = range(min(found), START + ORDERS * EVERY + 1, BATCH)
    return [(end, pa.Table.from_pylist(found[end], schema=RECORDS)) for end in ends]


def plan_of(spec):
    columns = {topic: declared_columns(spec, topic) or () for topic in spec.topics}
    return build_plan(spec, Config(), columns).plan


def measure(pipeline):
    """Return the rows of the shown orders, and how many records waited behind a batch at most."""
    plan = plan_of(pipeline_from_mapping(pipeline, Location(PAGE)))
    running = LocalPipeline(plan, {topic.name: [0] for topic in plan.sources})
    rows, waiting = [], 0
    for end, batch in batches():
        done = running.run(batch, end)
        waiting = max(waiting, running.counters["waiting"])
        for row in done.output.to_pylist():
            assert row["kind"] == ROW
            order, complete = int(row["key"]), json.loads(row["value"])["country"] is not None
            if order < SHOWN:
                delay = end - START - order * EVERY
                rows.append(Left(order=order, complete=complete, delay=delay))
    return rows, waiting


def measured_rows():
    """Return (the YAML blocks that hold, the cells) of each row of a table that is measured."""
    found, above = [], []
    for part in re.split(r"^## ", DOCS.joinpath(PAGE).read_text(), flags=re.MULTILINE):
        above += re.findall(r"^```yaml\n(.*?)^```$", part, re.MULTILINE | re.DOTALL)
        head, *lines = re.findall(r"^\|(.*)\|$", part, re.MULTILINE) or [""]
        if MEASURED in head:
            found += [([*above], [cell.strip() for cell in line.split("|")]) for line in lines[1:]]
    return found


TABLES = measured_rows()


@pytest.mark.parametrize(
    ("above", "cells"), TABLES, ids=[f"{len(above)}: {cells[0]}" for above, cells in TABLES]
)
def test_a_table_says_what_is_measured(above, cells):
    setting, *said = cells
    pipeline = {}
    for text in (*above, setting.strip("`")):
        pipeline |= yaml.safe_load(text)
    rows, waiting = measure(pipeline)
    delays = [row.delay for row in rows]
    assert said == [
        str(len(rows)),
        str(sum(row.complete for row in rows)),
        str(SHOWN - len({row.order for row in rows})),
        format_duration(round(median(delays) / SECOND) * SECOND),
        format_duration(round(max(delays) / SECOND) * SECOND),
        str(waiting),
    ]


def test_every_emission_is_measured():
    assert len(TABLES) == 9
    assert len(blocks("yaml", PAGE)) == 4


def test_its_settings_of_one_query_are_planned(tmp_path):
    file = tmp_path / "visits.yaml"
    file.write_text(blocks("yaml", PAGE)[-1])
    plan = plan_of(load_pipeline(file, {}))
    leaves = [each.leaves for each in plan.operators if isinstance(each, Aggregate)]
    assert leaves == ["changes", "closed"]


@pytest.mark.parametrize("case", load_cases(ROOT / CASES, {}), ids=lambda case: case.name)
def test_its_cases_hold(case):
    result = run_case(case, LocalExecutor(), around=Surroundings(variables={}))
    assert result.passed, "\n".join(report_lines(result))


def test_its_command_runs_these_cases():
    assert commands(PAGE) == [f"kaflow test {CASES}"]
