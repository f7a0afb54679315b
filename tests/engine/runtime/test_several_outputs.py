"""A pipeline with several outputs: what tasks hand to each, and what the driver does for each."""
# pyright: basic

import json
import os
from collections import Counter
from dataclasses import replace
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
import pytest
from deltalake import DeltaTable

from kaflow_engine.connectors.contract import FinishedBatch, Written
from kaflow_engine.errors import ModelError, StateError
from kaflow_engine.flow.flow import Backfill
from kaflow_engine.flow.graph import topic_sinks, with_avro_ids
from kaflow_engine.flow.records import DEAD_LETTER, RECORDS, ROW
from kaflow_engine.flow.sinks import letter_table
from kaflow_engine.model.columns import Column
from kaflow_engine.model.config import Config
from kaflow_engine.model.specs import PipelineSpec
from kaflow_engine.operators.levels import run_levels
from kaflow_engine.operators.rows.reports import BatchReport
from kaflow_engine.operators.rows.table_rows import SOURCE
from kaflow_engine.operators.rows.task import BatchContext
from kaflow_engine.plan.planner.pipeline_plan import build_plan
from kaflow_engine.runtime.batch.task_metrics import rows_written
from kaflow_engine.runtime.drive.backfill_guard import check_backfill, last_settled, state_of_stream
from kaflow_engine.runtime.sink import outputs
from kaflow_engine.runtime.sink.claims import Claims
from kaflow_engine.runtime.sink.outputs import (
    dropped_outputs,
    fence_outputs,
    hand_over,
    look_at_outputs,
    open_outputs,
)
from kaflow_engine.runtime.takeover.fencing import Logged, check_holdings
from kaflow_engine.runtime.tasks.settings import TaskSettings
from kaflow_engine.runtime.tasks.worker import WorkerTask
from kaflow_engine.state.log.batch_log import StateRecord
from kaflow_engine.state.storage.store import LocalStore
from tests.engine.runtime.stream_here import write_stream

START, HOUR = 1_767_225_600_000, 3_600_000
"""2026-01-01."""
SPEC = PipelineSpec.model_validate(
    {
        "name": "several",
        "outputs": [
            {"from": "events", "topic": "all", "key": "id"},
            {
                "query": "SELECT id, n FROM events WHERE n > 1",
                "topic": "big",
                "format": "avro",
                "key": "id",
            },
            {"query": "SELECT n FROM events", "table": "days", "interval": "9s"},
            {"query": "SELECT id FROM events WHERE n > 1", "table": "hours", "partition": "hour"},
        ],
        "topics": {"events": {"columns": {"id": "VARCHAR", "n": "BIGINT"}}},
        "partitions": 1,
    }
)
STATE = StateRecord(
    state_id="s",
    generation=1,
    partitions=1,
    created_ms=0,
    start={"events": {0: 0}},
    dimension_ends={},
    schemas={},
    fingerprint="",
    goal={"events": {0: 3}},
)


@pytest.fixture
def plan(tmp_path):
    columns = {"events": (Column("id", "VARCHAR"), Column("n", "BIGINT"))}
    found = build_plan(SPEC, Config(warehouse=str(tmp_path / "warehouse")), columns).plan
    return with_avro_ids(found, {topic_sinks(found)[1].id: 7}, {})


class Records:
    """Takes what would go to Kafka."""

    def __init__(self):
        self.parts = []

    def write(self, part):
        self.parts.append(part)
        rows = part.rows.filter(pc.equal(part.rows["kind"], ROW))
        topics = Counter(rows["topic"].to_pylist())
        return Written(rows=topics, notes=({"delivered": rows.num_rows},))


THREE = (b'{"id":"a","n":1}', b'{"id":"b","n":2}', b"{")


def run_task(plan, folder, batch=1, values=THREE, records=None, letters=None):
    """Run a batch of records in one task; return what the driver is given of it."""
    settings = TaskSettings(
        plan=plan,
        directory=folder,
        state=STATE.ref,
        epoch=1,
        snapshots=LocalStore(folder),
        sink=records or Records(),
        letters=letters,
        driver=os.getpid(),
    )
    given = [
        {
            "topic": "events",
            "partition": 0,
            "offset": n,
            "timestamp": START + n,
            "value": value,
            "headers": [],
        }
        for n, value in enumerate(values)
    ]
    context = BatchContext(batch=batch, batch_time=START, watermarks={}, epoch=1, mark=str(batch))
    with WorkerTask(settings, context, range(plan.partitions)) as task:
        run_levels(plan, context, pa.Table.from_pylist(given, RECORDS), task)
    return FinishedBatch(number=batch, mark=str(batch), notes=task.notes())


def opened(plan, folder, state=STATE):
    """Open the tables of a plan, as a run does, by name."""
    sinks = open_outputs(plan, state, LocalStore(folder / "state"), lambda: None)
    return dict(zip(("days", "hours"), sinks, strict=True))


def contents(folder, table, column):
    found = DeltaTable(str(folder / "warehouse" / table)).to_pyarrow_table()
    return sorted(found[column].to_pylist())


def test_records_are_one_delivery_and_rows_of_each_table_its_files(tmp_path, plan):
    records = Records()
    batch = run_task(plan, tmp_path, records=records)
    (part,) = records.parts
    rows = [(row["topic"], row["kind"]) for row in part.rows.to_pylist()]
    letters = ("several.dead_letters", DEAD_LETTER)
    assert sorted(rows) == [("all", ROW), ("all", ROW), ("big", ROW), letters]
    assert part.alone
    files = {name: of for note in batch.notes for name, of in note.get("files", {}).items()}
    assert {name: sum(file[2] for file in of) for name, of in files.items()} == {
        "days": 2,
        "hours": 1,
    }
    report = BatchReport(notes=batch.notes)
    written = {"all": 2, "big": 1, "days": 2, "hours": 1}
    assert rows_written({}, report) == written
    assert rows_written(written, report) == {name: 2 * rows for name, rows in written.items()}


@pytest.mark.parametrize("said", ["files", None])
def test_dead_letters_go_where_the_plan_of_their_batch_says(tmp_path, plan, said):
    records, files = Records(), Records()
    run_task(replace(plan, letters=said), tmp_path, records=records, letters=files)
    kinds = [
        sorted(kind for part in each.parts for kind in part.rows["kind"].to_pylist())
        for each in (records, files)
    ]
    rows, dead = [ROW] * 3, [DEAD_LETTER]
    assert kinds == ([rows, dead] if said else [rows + dead, []])


def test_each_table_gets_its_own_files_once(tmp_path, plan):
    batch = run_task(plan, tmp_path)
    tables = opened(plan, tmp_path)
    tables["days"].commit(batch)  # and the run ended here
    assert [tables[name].delivered(1) for name in tables] == [True, False]
    batch, tables = run_task(plan, tmp_path), opened(plan, tmp_path)
    for table in tables.values():
        table.commit(batch)
    assert contents(tmp_path, "days", "n") == [1, 2]
    assert contents(tmp_path, "hours", "id") == ["b"]


def test_what_any_of_them_holds_is_missed_in_a_log_that_lacks_it(tmp_path, plan):
    opened(plan, tmp_path)["hours"].commit(run_task(plan, tmp_path))
    held = look_at_outputs(plan, STATE)
    logged = Logged(pipeline="several", state="s", generation=1, last=0, marks={})
    with pytest.raises(StateError, match="was delivered to table 'hours', but its log"):
        check_holdings(logged, held)
    check_holdings(replace(logged, last=1), held)
    another = replace(STATE, state_id="another")
    with pytest.raises(StateError, match="to table 'hours' from state 's' generation 1"):
        check_holdings(replace(logged, state="another"), look_at_outputs(plan, another))
    hand_over(plan, another)
    assert look_at_outputs(plan, another) == []
    holders = {(each.table, each.state) for each in look_at_outputs(plan, STATE)}
    assert holders == {("days", "another"), ("hours", "another"), ("hours", "s")}


def test_the_driver_claims_what_any_table_adds(plan):
    topics_only = replace(plan, sinks=plan.sinks[:2])
    filled = replace(plan, backfill=Backfill(start=START, end=START + 24 * HOUR))
    claims = [Claims.of(None, each).transactional for each in (plan, topics_only, filled)]
    assert claims == [False, True, True]


def test_an_output_that_was_dropped_gets_the_batch_that_was_begun_for_it(tmp_path, plan):
    opened(plan, tmp_path)
    batch, fewer = run_task(plan, tmp_path), replace(plan, sinks=plan.sinks[:3])
    (dropped,) = dropped_outputs(plan, fewer, STATE, LocalStore(tmp_path / "state"))
    dropped.commit(batch)
    assert contents(tmp_path, "hours", "id") == ["b"]
    assert dropped_outputs(fewer, plan, STATE, LocalStore(tmp_path / "state")) == ()


def test_a_table_of_dead_letters_is_opened_where_no_other_is(plan, monkeypatch):
    opened = []
    monkeypatch.setattr(
        outputs, "open_outputs", lambda plan, *_: opened.append(plan.letters) or (plan.letters,)
    )
    table = letter_table("postgres", "default", "t")
    begun = replace(plan, sinks=plan.sinks[:2], letters=table)
    assert fence_outputs(begun, STATE, None, None, 1)
    for now in (begun, replace(begun, letters=None)):
        dropped_outputs(begun, now, STATE, None)
    assert opened == [table, None, table]


def test_a_backfill_replaces_in_every_table(tmp_path, plan):
    stream = replace(STATE, state_id="stream")
    for table in opened(plan, tmp_path, stream).values():
        table.commit(run_task(plan, tmp_path, values=[b'{"id":"old","n":5}'] * 4))
    filled = replace(plan, backfill=Backfill(start=START, end=START + 24 * HOUR))
    tables = opened(filled, tmp_path)
    for number, value in enumerate((b'{"id":"x","n":2}', b'{"id":"y","n":3}'), 1):
        batch = run_task(filled, tmp_path, number, [value])
        for table in tables.values():
            table.commit(batch)
    tables["days"].finish()  # and the run ended here
    for table in opened(filled, tmp_path).values():
        table.finish()
    assert contents(tmp_path, "days", "n") == [2, 3, 5]  # that of offset 3 was not read
    assert contents(tmp_path, "hours", "id") == ["old", "x", "y"]


def test_a_backfill_goes_on_with_what_an_earlier_version_noted(tmp_path, plan):
    filled = replace(plan, backfill=Backfill(start=START, end=START + 24 * HOUR))
    sink = opened(filled, tmp_path)["days"]
    for number, value in enumerate((b'{"id":"x","n":2}', b'{"id":"y","n":3}'), 1):
        batch = run_task(filled, tmp_path, number, [value])
        (files,) = [
            note["files"]["days"] for note in batch.notes if "days" in note.get("files", ())
        ]
        LocalStore(tmp_path / "state").put(f"files/{number}.json", json.dumps(files).encode())
    sink.commit(run_task(filled, tmp_path, 2, [b'{"id":"y","n":4}']))  # it runs again
    sink.finish()
    assert contents(tmp_path, "days", "n") == [2, 4]


def test_the_range_of_a_backfill_is_whole_in_every_table(tmp_path, plan):
    config = Config.model_validate({"state": {"rocksdb": {"path": str(tmp_path)}}})
    write_stream(state_of_stream(config, "several"), plan, START + 26 * HOUR, START + 26 * HOUR)
    check_backfill(SPEC, config, Backfill(start=START, end=START + 24 * HOUR))
    with pytest.raises(ModelError, match="in the middle of a partition of table 'days'"):
        check_backfill(SPEC, config, Backfill(start=START, end=START + HOUR))
    assert last_settled(SPEC, config, START + 26 * HOUR) == "2026-01-01"


def test_rows_name_their_records_in_every_table(tmp_path, plan):
    batch = run_task(plan, tmp_path)
    for table in opened(plan, tmp_path).values():
        table.commit(batch)
    assert contents(tmp_path, "days", SOURCE[1]) == [0, 1]
    assert contents(tmp_path, "hours", SOURCE[1]) == [1]
    assert Path(tmp_path / "warehouse" / "hours" / "_hour=2026-01-01-00").is_dir()
