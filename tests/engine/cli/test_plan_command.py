"""`kaflow plan`: what a start would do, read from state directories that it leaves alone."""

import json
from collections.abc import Mapping
from dataclasses import replace
from hashlib import sha256
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from kaflow_engine.cli.main import kaflow
from kaflow_engine.flow.flow import Flow
from kaflow_engine.flow.graph import topic_sinks, with_avro_ids
from kaflow_engine.model.config import Config
from kaflow_engine.model.pipelines.loader import load_pipeline
from kaflow_engine.plan.planner.pipeline_plan import build_plan, declared_columns
from kaflow_engine.state.log.batch_log import BatchLog
from kaflow_engine.state.storage.lease import hold_lease
from tests.engine.state_here import write_state

PIPELINE = """\
name: p
query: |
  SELECT e.id, d.name
  FROM events e
  LEFT JOIN names d ON e.id = d.id
output: {topic: out, key: id}
state: {dimensions: [names], events: {default_ttl: 1h}}
topics:
  events: {columns: {id: VARCHAR, n: BIGINT}}
  names: {columns: {id: VARCHAR, name: VARCHAR}}
"""
STATE = Path(".kaflow/state/p")
MARK = 1_767_225_600_000


@pytest.fixture(autouse=True)
def _project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("p.yaml").write_text(PIPELINE)


def run(*arguments: str) -> Result:
    return CliRunner().invoke(kaflow, ["plan", "p.yaml", *arguments], prog_name="kaflow")


def change(old: str, new: str) -> None:
    Path("p.yaml").write_text(PIPELINE.replace(old, new))


def plan_now() -> Flow:
    spec = load_pipeline(Path("p.yaml"), {})
    schemas = {name: declared_columns(spec, name) or () for name in ("events", "names")}
    return replace(build_plan(spec, Config(), schemas).plan, partitions=3)


def create(batches: int, *, opened: bool = False, plan: Flow | None = None) -> BatchLog:
    """Write the state that a run of so many batches leaves."""
    return write_state(STATE, plan or plan_now(), batches, opened=opened)


def contents() -> Mapping[str, str]:
    files = [file for file in Path(".kaflow").rglob("*") if file.is_file()]
    return {str(file): sha256(file.read_bytes()).hexdigest() for file in files}


def test_a_pipeline_without_state() -> None:
    result = run()
    assert result.exit_code == 0, result.output
    assert result.stdout == "new  p  batch 1\n    there is no state yet\n1 new\n"
    assert not Path(".kaflow").exists()


def test_a_pipeline_that_resumes() -> None:
    create(2)
    before = contents()
    result = run()
    assert result.exit_code == 0, result.output
    assert (
        result.stdout == "unchanged  p  batch 3, watermark 2026-01-01T00:00:00.000Z\n1 unchanged\n"
    )
    assert contents() == before


def test_a_batch_that_was_left_open() -> None:
    create(2, opened=True)
    assert "    batch 3 is run again first\n" in run().stdout


def test_a_change_with_which_the_state_goes_on() -> None:
    create(1)
    change("key: id}", "key: id}\ndelivery: at_least_once")
    result = run()
    assert result.exit_code == 0, result.output
    assert result.stdout.splitlines() == [
        "restart, state kept  p  batch 2, watermark 2026-01-01T00:00:00.000Z",
        "    delivery is at_least_once, was exactly_once",
        "1 restart, state kept",
    ]


def test_a_pipeline_that_runs() -> None:
    create(1)
    with hold_lease(STATE):
        (found,) = json.loads(run("--json").stdout)
    assert found["status"] == "unchanged"
    assert "runs it" in found["running"]
    assert json.loads(run("--json").stdout)[0]["running"] is None


def test_a_damaged_state() -> None:
    create(1)
    (STATE / "commits" / "1.json").write_text("{}")
    result = run()
    assert result.exit_code == 14
    assert "    'commits/1.json' is damaged\n" in result.stdout


def test_columns_that_no_file_declares_come_from_the_state() -> None:
    create(1)
    change("  events: {columns: {id: VARCHAR, n: BIGINT}}\n", "")
    assert run().stdout.startswith("unchanged  p  batch 2")


def test_columns_that_are_not_known_yet() -> None:
    change("  events: {columns: {id: VARCHAR, n: BIGINT}}\n", "")
    result = run()
    assert result.exit_code == 0
    assert "    the columns of topic 'events' are not known yet\n" in result.stdout


def test_a_query_that_wants_columns_which_the_state_does_not_hold() -> None:
    create(1)
    text = PIPELINE.replace("  events: {columns: {id: VARCHAR, n: BIGINT}}\n", "")
    Path("p.yaml").write_text(text.replace("e.id, d.name", "e.id, e.n, d.name"))
    result = run()
    assert result.exit_code == 1
    assert result.stdout.startswith("cannot tell  p")
    assert "    p.yaml:3: unknown column 'n' in 'e'\n" in result.stdout
    assert "--connect looks for others" in result.stdout


def test_the_schema_id_of_an_avro_output_is_no_change() -> None:
    change("key: id}", "key: id, format: avro}")
    plan = plan_now()
    create(1, plan=with_avro_ids(plan, {topic_sinks(plan)[0].id: 7}, {}))
    assert run().stdout.startswith("unchanged  p  batch 2")


def test_files_that_bring_other_brokers_are_planned_each_by_itself() -> None:
    for name in ("a", "b"):
        Path(f"{name}.yml").write_text(
            f"pipeline:\n  name: {name}\n"
            f"  source: {{type: kafka, kafka: {{brokers: ['{name}:9092'], topics: [{name}]}}, "
            "columns: {n: INT}}\n"
            "  handler: {type: handlers.InferredMemBatch, sql: SELECT n FROM batch}\n"
            "  sink: {type: noop}\n"
        )
    said = CliRunner().invoke(kaflow, ["plan", "a.yml", "b.yml", "--json"])
    assert (said.exit_code, said.stderr) == (0, "")
    assert [each["name"] for each in json.loads(said.stdout)] == ["a", "b"]
