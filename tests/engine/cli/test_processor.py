"""`kaflow processor` where no Dagster answers: what is created, refused, and said."""

from dataclasses import replace
from pathlib import Path

import pytest
import yaml
from click.testing import CliRunner

from kaflow_engine.cli.main import kaflow
from kaflow_engine.cli.processor.files import with_key
from kaflow_engine.cli.processor.switching import refuse_others, state_of
from kaflow_engine.connectors.dagster.client import StreamRun, Switch
from kaflow_engine.connectors.dagster.streams import Stream
from kaflow_engine.errors import ModelError
from kaflow_engine.testing.services.child import free_ports

SQL = "INSERT INTO {name}-out\nSELECT STREAM id FROM orders;\n"
YAML = "# ours\nname: {name}  # short\ntopics:\n  orders: {{columns: {{id: VARCHAR}}}}\n"


@pytest.fixture(autouse=True)
def _in_a_project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("kaflow.yaml").write_text("kafka: {brokers: ['127.0.0.1:1']}\n")
    Path("pipelines").mkdir()
    Path("given").mkdir()
    written("a")


def written(name: str, sql: str = SQL) -> None:
    Path(f"given/{name}.processor.sql").write_text(sql.format(name=name))
    Path(f"given/{name}.processor.yaml").write_text(YAML.format(name=name))


def run(*arguments: str, code: int = 0) -> str:
    done = CliRunner().invoke(kaflow, ["processor", *arguments], prog_name="kaflow")
    assert done.exit_code == code, done.output
    return done.output


def create(*options: str, code: int = 0) -> str:
    return run("create", "given/a.processor.sql", "--no-connect", *options, code=code)


def test_what_is_created_stands_in_the_project() -> None:
    assert create() == (
        "created pipelines/a.processor.sql, pipelines/a.processor.yaml: stopped\n"
        "next: kaflow processor start a\n"
    )
    assert Path("pipelines/a.processor.sql").read_text() == SQL.format(name="a")
    assert Path("pipelines/a.processor.yaml").read_text() == YAML.format(name="a")


def test_another_name_and_runners_change_only_their_lines() -> None:
    assert create("--name", "b", "--runners", "3").endswith("next: kaflow processor start b\n")
    assert Path("pipelines/b.processor.yaml").read_text() == (
        "# ours\nname: b  # short\ntopics:\n  orders: {columns: {id: VARCHAR}}\nrunners: 3\n"
    )


def test_nothing_is_overwritten() -> None:
    create()
    assert create(code=10) == (
        "error: pipelines/a.processor.sql: there is a processor of this name\n"
        "  hint: take another one with --name, or `kaflow processor delete` it\n"
    )


def test_mistakes_are_those_of_the_files_that_were_given() -> None:
    written("a", SQL.replace("id", "idd"))
    said = create(code=10)
    assert said.startswith("error: given/a.processor.sql:2: unknown column 'idd'"), said
    assert said.endswith("nothing was created\n")
    assert list(Path("pipelines").iterdir()) == []


def test_a_name_that_another_pipeline_has() -> None:
    Path("pipelines/other.yaml").write_text(
        "name: a\nquery: SELECT id FROM t\noutput: {topic: o}\n"
        "topics: {t: {columns: {id: VARCHAR}}}\n"
    )
    assert create(code=10) == (
        "error: given/a.processor.yaml:2: the pipeline at pipelines/other.yaml:1 has this name\n"
        "  hint: take another one with --name\n"
        "nothing was created\n"
    )
    assert create("--name", "b").endswith("next: kaflow processor start b\n")


@pytest.mark.parametrize(
    ("gone", "said", "hint"),
    [
        ("kaflow.yaml", "there is no configuration here", "--into FOLDER"),
        ("pipelines", "pipelines: there is no such folder", "--into FOLDER"),
        ("given/a.processor.sql", "unknown file 'a.processor.sql'", ""),
    ],
)
def test_what_is_missing(gone: str, said: str, hint: str) -> None:
    path = Path(gone)
    path.rmdir() if path.is_dir() else path.unlink()
    output = create(code=10)
    assert said in output
    assert hint in output


@pytest.mark.parametrize(
    "command",
    [
        ("list",),
        ("show", "a"),
        ("start", "a"),
        ("stop", "a"),
        ("scale", "a", "--runners", "2"),
        ("delete", "a", "--yes"),
    ],
)
def test_no_dagster_answers(command: tuple[str, ...]) -> None:
    create()
    (port,) = free_ports(1)
    said = run(*command, "--dagster", f"http://me:secret@127.0.0.1:{port}", code=1)
    assert said == (
        f"error: no Dagster answers at http://127.0.0.1:{port}\n"
        "  hint: start it with `dg dev -w workspace.yaml` or `make run`, or name another one with "
        "--dagster or DAGSTER_URL; without Dagster, `kaflow run FILE` runs a processor\n"
    )
    assert Path("pipelines/a.processor.yaml").read_text() == YAML.format(name="a")


@pytest.mark.parametrize("command", [("scale", "--runners", "2"), ("delete", "--yes")])
def test_a_name_that_the_project_does_not_have(command: tuple[str, ...]) -> None:
    create("--name", "orders")
    name, *options = command
    said = run(name, "ordres", *options, code=10)
    assert said == "error: pipelines: unknown processor 'ordres'\n  hint: did you mean 'orders'?\n"


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("", "runners: 4\n"),
        ("name: a\nrunners:   2\n", "name: a\nrunners:   4\n"),
        ("runners: 2 # two\nname: a", "runners: 4 # two\nname: a"),
        ("runners: # none\nname: a\n", "runners: 4 # none\nname: a\n"),
        ("'runners' : 2\nname: a\n", "'runners' : 4\nname: a\n"),
        ("{name: a, runners: 2}\n", "{name: a, runners: 4}\n"),
        ("# runners: 2\nname: a\n", "# runners: 2\nname: a\nrunners: 4\n"),
        ("  name: a\n  group: g\n", "  name: a\n  group: g\n  runners: 4\n"),
        ("topics:\n  runners: {}\n", "topics:\n  runners: {}\nrunners: 4\n"),
        ("sql: |\n  runners: 2\n", "sql: |\n  runners: 2\nrunners: 4\n"),
    ],
)
def test_one_key_of_a_file(text: str, expected: str) -> None:
    assert with_key(text, "runners", 4, Path("a.processor.yaml")) == expected


@pytest.mark.parametrize("text", ["{name: a}\n", "name: a\n...\n", "- a\n", "a\n"])
def test_a_file_that_only_its_author_can_change(text: str) -> None:
    with pytest.raises(ModelError) as refused:
        with_key(text, "runners", 4, Path("a.processor.yaml"))
    assert str(refused.value) == (
        "a.processor.yaml: 'runners' cannot be set in this file\n  hint: write `runners: 4` into it"
    )


@pytest.mark.parametrize("name", ["b", "yes", "1e3", "2", "a: b", "x\nquery: SELECT 1", "a # b"])
def test_a_name_is_text(name: str) -> None:
    text = with_key("name: a  # short\n", "name", name, Path("a.processor.yaml"))
    assert yaml.safe_load(text) == {"name": name}
    assert text.endswith("  # short\n")


@pytest.mark.parametrize("name", ["../b", "..", "b/c", "", "a b", "-x"])
def test_a_name_that_is_none(name: str) -> None:
    assert "is no" in (said := create("--name", name, code=10)), said
    assert list(Path("pipelines").iterdir()) == []
    assert not Path("b.processor.sql").exists()


@pytest.mark.parametrize("there", ["a.processor.sql", "a.processor.yaml", "a.processor.yml"])
def test_no_file_of_a_processor_is_overwritten(there: str) -> None:
    Path("pipelines", there).write_text("ours\n")
    assert f"pipelines/{there}: there is a processor of this name" in create(code=10)
    assert [path.name for path in Path("pipelines").iterdir()] == [there]
    assert Path("pipelines", there).read_text() == "ours\n"


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("topics: [", "this is not valid YAML"),
        ("- a\n", "this is not a processor"),
        ("naem: a\n", "unknown key 'naem'"),
    ],
)
def test_a_yaml_that_cannot_be_read(text: str, said: str) -> None:
    Path("given/a.processor.yaml").write_text(text)
    assert create(code=10).startswith(f"error: given/a.processor.yaml:1: {said}")
    assert list(Path("pipelines").iterdir()) == []


def test_a_processor_that_is_only_yaml() -> None:
    Path("given/b.processor.yml").write_text(
        "sql: |\n  INSERT INTO o SELECT STREAM id FROM t\ntopics: {t: {columns: {id: VARCHAR}}}\n"
    )
    said = run("create", "given/b.processor.yml", "--no-connect", "--runners", "2")
    assert said.startswith("created pipelines/b.processor.yaml: stopped\n")
    assert Path("pipelines/b.processor.yaml").read_text().endswith("\nrunners: 2\n")


STREAM = Stream(
    name="a",
    front_end="Lenses processor",
    location="kaflow",
    repository="r",
    sensor="s",
    run="a",
    together=("a",),
)


@pytest.mark.parametrize(
    ("on", "statuses", "state"),
    [
        (False, [], "stopped"),
        (False, ["CANCELED"], "stopped"),
        (False, ["CANCELING"], "stopping"),
        (True, [], "starting"),
        (True, ["STARTING"], "starting"),
        (True, ["STARTED", "FAILURE"], "running"),
    ],
)
def test_the_state_of_a_processor(on: bool, statuses: list[str], state: str) -> None:
    runs = [StreamRun(id="r", status=status) for status in statuses]
    assert state_of(STREAM, Switch(id="s", on=on), runs) == state


def test_a_group_is_switched_as_a_whole() -> None:
    shared = replace(STREAM, run="g", together=("a", "b"))
    refuse_others(STREAM, whole=False, doing="stop")
    refuse_others(shared, whole=True, doing="stop")
    with pytest.raises(ModelError, match="'a' shares its run with 'b', in group 'g'") as refused:
        refuse_others(shared, whole=False, doing="stop")
    assert refused.value.hint == "stop all of them with --group"
