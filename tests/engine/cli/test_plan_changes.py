"""`kaflow plan` over a project: what else a change touches, and decisions that are written down."""
# pyright: basic

import json
from dataclasses import replace
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from kaflow_engine.cli.main import kaflow
from kaflow_engine.errors import StateError
from kaflow_engine.flow.flow import Backfill, Flow
from kaflow_engine.model.config import Config
from kaflow_engine.model.pipelines.loader import load_pipeline
from kaflow_engine.plan.evolution.diff import change
from kaflow_engine.runtime.drive.bounded import backfill_plan
from kaflow_engine.runtime.planning.preview import outlook_of
from kaflow_engine.runtime.takeover.rebuild import approved_rebuild, begin, continued, move_aside
from kaflow_engine.state.log.approval import Begin, end_rebuild, load_approval, load_rebuild
from kaflow_engine.state.log.batch_log import BatchLog
from kaflow_engine.state.storage.store import LocalStore
from tests.engine.state_here import write_state

WRITER = """\
name: writer
query: SELECT e.id, e.n, d.name FROM events e LEFT JOIN names d ON e.id = d.id
output: {topic: middle, key: id}
state: {dimensions: [names]}
topics:
  events: {columns: {id: VARCHAR, n: BIGINT, at: BIGINT}}
  names: {columns: {id: VARCHAR, name: VARCHAR}}
"""
READER = """\
name: reader
query: SELECT b.id, b.n FROM middle b
output: {topic: out, key: id}
topics: {middle: {columns: {id: VARCHAR, n: BIGINT}}}
"""
STATE = Path(".kaflow/state")


@pytest.fixture(autouse=True)
def _project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("pipelines").mkdir()
    for name, text in (("writer", WRITER), ("reader", READER)):
        Path(f"pipelines/{name}.yaml").write_text(text)
        write_state(STATE / name, plan_of(name), 2)


def plan_of(name: str) -> Flow:
    found = outlook_of(load_pipeline(Path(f"pipelines/{name}.yaml"), {}), Config()).new
    assert found is not None
    return found


def run(*arguments: str, code: int = 0) -> Result:
    done = CliRunner().invoke(kaflow, ["plan", "pipelines", *arguments], prog_name="kaflow")
    assert done.exit_code == code, done.output
    return done


def rewrite(old: str, new: str) -> None:
    assert old in WRITER
    Path("pipelines/writer.yaml").write_text(WRITER.replace(old, new))


TOUCHED = [
    ("e.n, ", "", "breaks", "column 'n' is gone, and it uses it"),
    ("e.n, ", "CAST(e.n AS VARCHAR) AS n, ", "breaks", "column 'n' is VARCHAR, was BIGINT"),
    ("e.n, ", "e.n + 1 AS n, ", "touches", "column 'n' is computed otherwise"),
    ("d.name", "d.name, e.at", "touches", "column 'at' is added"),
    (", d.name", "", "touches", "column 'name' is gone"),
    ("middle", "elsewhere", "breaks", "no one writes topic 'middle' any more"),
    ("key: id}", "key: id, format: avro}", "breaks", "records are avro from now on, json before"),
    ("key: id}", "key: name}", "touches", "the key is 'name', was 'id'"),
]


@pytest.mark.parametrize(("old", "new", "kind", "words"), TOUCHED, ids=[row[3] for row in TOUCHED])
def test_pipelines_that_read_what_changes(old: str, new: str, kind: str, words: str) -> None:
    rewrite(old, new)
    lines = run().stdout.splitlines()
    assert f"    {kind} 'reader', which reads 'middle': {words}" in lines
    (found,) = (each for each in json.loads(run("--json").stdout) if each["name"] == "writer")
    touched = {"pipeline": "reader", "topic": "middle", "breaking": [], "others": []}
    touched |= {"breaking" if kind == "breaks" else "others": [words]}
    assert found["touched"] == [touched]


def test_pipelines_that_come_and_go() -> None:
    Path("pipelines/writer.yaml").unlink()
    Path("pipelines/third.yaml").write_text(READER.replace("reader", "third"))
    wanted = Backfill(start=0, end=86_400_000)
    own = backfill_plan(plan_of("reader"), wanted)
    write_state(STATE / own.pipeline, own)  # belongs to its pipeline
    assert run().stdout.splitlines() == [
        "unchanged  reader  batch 3, watermark 2026-01-01T00:00:00.000Z",
        "new        third   batch 1",
        "    there is no state yet",
        "removed    writer  watermark 2026-01-01T00:00:00.000Z",
        "    no file has a pipeline of id 'writer'",
        "    breaks 'reader', which reads 'middle': no one writes topic 'middle' any more",
        "    breaks 'third', which reads 'middle': no one writes topic 'middle' any more",
        "1 unchanged, 1 new, 1 removed",
    ]
    alone = CliRunner().invoke(kaflow, ["plan", "pipelines/reader.yaml"])
    assert "removed" not in alone.stdout


def test_a_new_name_with_the_same_id() -> None:
    rewrite("name: writer\n", "name: author\nid: writer\n")
    lines = run().stdout.splitlines()
    assert "    name is author, was writer" in lines
    assert lines[-1] == "1 unchanged, 1 restart, state kept"


UNFIT = ("events: {columns", "events: {event_time: at, columns")


def test_a_rebuild_needs_a_decision() -> None:
    rewrite(*UNFIT)
    before = sorted(STATE.rglob("*"))
    lines = run(code=1).stdout.splitlines()
    assert lines[1].startswith("needs a rebuild  writer")
    assert lines[2] == "    topic 'events': event time is CAST(c.at AS BIGINT), was not set"
    assert lines[-2].endswith("or let it be rebuilt: kaflow plan pipelines --approve writer")
    assert sorted(STATE.rglob("*")) == before
    lines = run("--approve", "writer", "--from", "latest").stdout.splitlines()
    assert any(line.startswith("    approved, --from latest: ") for line in lines)
    approval = load_approval(LocalStore(STATE / "writer"))
    assert approval is not None
    assert (approval.pipeline, approval.begin) == ("writer", "latest")
    assert "event time is CAST(c.at AS BIGINT)" in approval.reasons[0]
    (found,) = (each for each in json.loads(run("--json").stdout) if each["name"] == "writer")
    assert (found["status"], found["approved"]) == ("rebuild", "latest")


def test_an_approval_counts_for_exactly_that_change() -> None:
    rewrite(*UNFIT)
    run("--approve", "all")
    plan = plan_of("writer")
    log = BatchLog(LocalStore(STATE / "writer"))
    assert approved_rebuild(log, plan, change) is not None
    text = WRITER.replace(*UNFIT).replace("e.n, ", "")
    Path("pipelines/writer.yaml").write_text(text)
    run(code=1)
    assert approved_rebuild(log, plan_of("writer"), change) is None


def test_what_cannot_be_approved() -> None:
    told = run("--approve", "reader", code=14)
    assert "pipeline 'reader' needs no approval" in told.stderr
    assert "did you mean 'reader'?" in run("--approve", "raeder", code=10).stderr
    rewrite(*UNFIT)
    text = Path("pipelines/writer.yaml").read_text()
    text = text.replace("LEFT JOIN names d", "LEFT JOIN events d").replace("d.name", "d.n AS name")
    text = text.replace("  names: {columns: {id: VARCHAR, name: VARCHAR}}\n", "")
    Path("pipelines/writer.yaml").write_text(text.replace("[names]", "[events]"))
    told = run("--approve", "writer", code=14).stderr
    assert "topic 'events' is a dimension of pipeline 'writer' and drives it, too" in told
    assert not (STATE / "writer" / "approved.json").exists()
    assert "needs a rebuild" in run("--approve", "writer", "--from", "earliest").stdout


def test_a_damaged_decision_is_told() -> None:
    (STATE / "writer" / "approved.json").write_text("{")
    assert "'approved.json' is damaged" in run(code=14).stdout


def aside() -> tuple[BatchLog, Flow]:
    rewrite(*UNFIT)
    run("--approve", "writer")
    plan = plan_of("writer")
    log = BatchLog(LocalStore(STATE / "writer"))
    approved = approved_rebuild(log, plan, change)
    assert approved is not None
    begin(log, approved.state, approved.approval)
    return log, plan


def test_a_decision_is_used_once() -> None:
    log, plan = aside()
    assert load_approval(log.store) is None
    assert approved_rebuild(log, plan, change) is None
    with pytest.raises(StateError, match="was made for another plan"):
        change(plan_of("reader"), plan)


@pytest.mark.parametrize("moved", [(), ("state.json",), ("state.json", "batches", "plans")])
def test_a_state_is_set_aside_however_often_it_is_interrupted(moved: tuple[str, ...]) -> None:
    log, _ = aside()
    directory, rebuild = STATE / "writer", load_rebuild(log.store)
    assert rebuild is not None
    (directory / "lease").write_text("")
    old = directory / "old" / "s"
    old.mkdir(parents=True)
    for name in moved:
        (directory / name).rename(old / name)
    move_aside(directory, rebuild)
    assert sorted(path.name for path in directory.iterdir()) == ["lease", "old", "rebuild.json"]
    there = sorted(path.name for path in old.iterdir())
    assert there == ["batches", "commits", "plans", "state.json"]
    end_rebuild(log.store, rebuild)
    assert load_rebuild(log.store) is None
    assert (old / "rebuild.json").is_file()


def test_a_new_state_is_never_set_aside() -> None:
    log, plan = aside()
    directory, rebuild = STATE / "writer", load_rebuild(log.store)
    assert rebuild is not None
    move_aside(directory, rebuild)
    write_state(directory, plan, state_id="new")
    move_aside(directory, rebuild)
    state = BatchLog(LocalStore(directory)).load_state()
    assert state is not None
    assert state.state_id == "new"


@pytest.mark.parametrize(
    ("how", "events"), [("continue", {0: 7, 1: 3}), ("earliest", {0: 1, 1: 1, 2: 1})]
)
def test_where_events_begin_anew(how: Begin, events: dict[int, int]) -> None:
    """Events go on where they were, also in a partition that is new; dimensions begin again."""
    log, plan = aside()
    rebuild = load_rebuild(log.store)
    state = log.load_state()
    assert rebuild is not None
    assert state is not None
    rebuild = replace(
        rebuild,
        approval=replace(rebuild.approval, begin=how),
        offsets={"events": {0: 7, 1: 3}, "names": {0: 9}, "gone": {0: 1}},
    )
    begin_at = {"events": {0: 1, 1: 1, 2: 1}, "names": {0: 0}}
    made = continued(lambda counts: replace(state, start=begin_at), plan, rebuild)
    found = made({"events": 3, "names": 1})
    assert found.start == {"events": begin_at["events"] | events, "names": {0: 0}}
