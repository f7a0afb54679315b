"""What a backfill checks before it puts its files in the place of others."""
# pyright: basic

from dataclasses import astuple, replace
from pathlib import Path
from types import SimpleNamespace

import pyarrow as pa
import pytest
from deltalake import DeltaTable

from kaflow_engine.connectors.contract import FinishedBatch
from kaflow_engine.connectors.delta.data_files import write_files
from kaflow_engine.connectors.kafka.client import KafkaSettings
from kaflow_engine.connectors.kafka.clusters import input_topics
from kaflow_engine.errors import StateError
from kaflow_engine.flow.flow import Backfill
from kaflow_engine.flow.graph import table_sinks
from kaflow_engine.flow.records import OUTPUT
from kaflow_engine.model.columns import Column
from kaflow_engine.model.config import Config
from kaflow_engine.model.specs import PipelineSpec
from kaflow_engine.operators.rows.table_rows import typed_rows
from kaflow_engine.plan.planner.pipeline_plan import build_plan
from kaflow_engine.runtime.batch.data_loss import settle_losses
from kaflow_engine.runtime.batch.position import Position
from kaflow_engine.runtime.drive.bounded import refuse_compacted
from kaflow_engine.runtime.failures.failures import DataLost
from kaflow_engine.runtime.sink.outputs import open_outputs
from kaflow_engine.runtime.source import inputs
from kaflow_engine.state.log.batch_log import StateRecord
from kaflow_engine.state.storage.store import LocalStore

START, DAY = 1_767_225_600_000, 86_400_000
SPEC = {
    "name": "keeper",
    "query": "SELECT c.n FROM clicks c",
    "output": {"table": "kept"},
    "topics": {"clicks": {"on_data_loss": "continue"}},
}


def plan_in(folder, force=False):
    """Plan the backfill of a day."""
    spec, config = PipelineSpec.model_validate(SPEC), Config(warehouse=str(folder))
    plan = build_plan(spec, config, {"clicks": (Column("n", "BIGINT"),)}).plan
    return replace(plan, backfill=Backfill(start=START, end=START + DAY, force=force))


def table_of(plan):
    """Return the table of a plan that writes one."""
    (sink,) = table_sinks(plan)
    return sink.table


def written(plan, number, name, *offsets):
    """Write rows of clicks, as tasks do; return the batch that they are."""
    rows = [
        {"value": b'["1"]', "timestamp": START, "source_partition": 0, "source_offset": offset}
        for offset in offsets
    ]
    table = table_of(plan)
    typed = typed_rows(table, pa.Table.from_pylist(rows, OUTPUT))
    files = write_files(Path(table.path), "_day", typed, name)
    notes = [{"files": {table.name: [astuple(file) for file in files]}}]
    return FinishedBatch(number=number, mark="", notes=notes)


def opened(plan, state, folder):
    """Open the table of a plan, as a run does."""
    (sink,) = open_outputs(plan, state, LocalStore(folder / "state"), lambda: None)
    return sink


def offsets_in(plan):
    """Return which records the rows of the table were made of."""
    return sorted(DeltaTable(table_of(plan).path).to_pyarrow_table()["_source_offset"].to_pylist())


STATE = StateRecord(
    state_id="s",
    generation=1,
    partitions=1,
    created_ms=0,
    start={"clicks": {0: 2}},
    dimension_ends={},
    schemas={},
    fingerprint="",
    goal={"clicks": {0: 5}},
)


def test_rows_of_what_was_read_are_replaced(tmp_path):
    plan = plan_in(tmp_path)
    stream = opened(replace(plan, backfill=None), replace(STATE, state_id="stream"), tmp_path)
    stream.commit(written(plan, 1, "s", 1, 2, 4, 5))
    sink = opened(plan, STATE, tmp_path)
    sink.commit(written(plan, 1, "b1", 2, 3))
    sink.commit(written(plan, 2, "b2", 4))
    sink.finish()
    assert offsets_in(plan) == [1, 2, 3, 4, 5]
    DeltaTable(table_of(plan).path).optimize.compact()
    (tmp_path / "kept" / "_day=2026-01-01" / "b1.parquet").unlink()
    sink.finish()  # as after a crash behind the commit
    assert offsets_in(plan) == [1, 2, 3, 4, 5]


DAMAGE = [
    (lambda path: path.unlink(), "is gone"),
    (lambda path: path.write_bytes(b"PAR1"), "has 4 bytes instead of"),
]


@pytest.mark.parametrize(("damage", "said"), DAMAGE)
def test_a_file_that_was_vacuumed_before_its_commit(tmp_path, damage, said):
    plan = plan_in(tmp_path)
    stream = opened(replace(plan, backfill=None), replace(STATE, state_id="stream"), tmp_path)
    stream.commit(written(plan, 1, "s", 2))
    sink = opened(plan, STATE, tmp_path)
    sink.commit(written(plan, 1, "b1", 2))
    sink.commit(written(plan, 2, "b2", 3))
    damage(tmp_path / "kept" / "_day=2026-01-01" / "b2.parquet")
    with pytest.raises(StateError, match=f"{said}.*: _day=2026-01-01/b2.parquet") as caught:
        sink.finish()
    assert caught.value.hint == (
        "add --restart to begin the backfill again; vacuum tables with a retention longer than the "
        "longest backfill"
    )
    assert offsets_in(plan) == [2]


@pytest.mark.parametrize(("is_backfill", "force", "refused"), [(0, 0, 0), (1, 0, 1), (1, 1, 0)])
def test_no_row_goes_with_a_record_that_is_lost(tmp_path, monkeypatch, is_backfill, force, refused):
    """Whatever `on_data_loss` says: the stream may have made a row of it."""
    plan = plan_in(tmp_path, bool(force))
    plan = plan if is_backfill else replace(plan, backfill=None)
    ends = {"earliest": {"clicks": {0: 4}}, "latest": {"clicks": {0: 9}}}
    monkeypatch.setattr(input_topics, "offsets", lambda kafka, counts, when, **more: ends[when])
    monkeypatch.setattr(input_topics, "topic_ids", lambda *asked: {})
    standing = Position(batch=1, batch_time=0, offsets={"clicks": {0: 2}})
    watch = SimpleNamespace(say=lambda **about: None)

    nowhere = input_topics.InputTopics.all_in(KafkaSettings(()))

    def settled():
        return settle_losses(
            inputs.Inputs(nowhere),
            plan,
            standing,
            {"clicks": 1},
            watch,
            {},
        )[0].offsets

    if not refused:
        assert settled() == {"clicks": {0: 4}}
        return
    with pytest.raises(DataLost, match="2 offsets are lost\n  hint: the table may have rows"):
        settled()


@pytest.mark.parametrize("force", [False, True])
@pytest.mark.parametrize("policy", ["compact", "compact,delete", "delete", None])
def test_a_topic_that_is_compacted(tmp_path, monkeypatch, policy, force):
    plan = plan_in(tmp_path, force)
    settings = {"cleanup.policy": policy} if policy else {}  # where a broker does not say
    monkeypatch.setattr(input_topics, "topic_settings", lambda kafka, topic: settings)
    nowhere = input_topics.InputTopics.all_in(KafkaSettings(()))
    if force or policy in ("delete", None):
        refuse_compacted(plan, plan.backfill, nowhere)
        return
    with pytest.raises(StateError, match="topic 'clicks' is compacted: table 'kept' may have rows"):
        refuse_compacted(plan, plan.backfill, nowhere)
