"""`kaflow validate`: every mistake of every file, nothing heavy, soon done."""

import json
import subprocess
import sys
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from kaflow_engine.cli.main import kaflow

PIPELINE = """\
name: {name}
query: |
  SELECT e.user_id, p.tier
  FROM events e
  LEFT JOIN people p ON e.user_id = p.{key}
output: {{topic: out.{name}, key: user_id}}
state: {{dimensions: [people]}}
"""
TOPICS = """\
topics:
  events: {columns: {user_id: VARCHAR}}
  people: {columns: {user_id: VARCHAR, tier: VARCHAR}}
"""
LEFT = "left to --connect: topics, columns, permissions, output topics\n"
HEAVY = {"pandas", "pyspark", "polars", "great_expectations", "confluent_kafka", "rocksdict"}


@pytest.fixture(autouse=True)
def _in_a_folder_of_its_own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def write(name: str, key: str = "user_id", topics: str = TOPICS) -> None:
    Path(f"{name}.yaml").write_text(PIPELINE.format(name=name, key=key) + topics)


def test_errors_come_first_and_the_count_is_the_last_line() -> None:
    write("good")
    write("bad", key="user")
    assert run(".").output == (
        "error: bad.yaml:5: unknown column 'user' in 'p'\n"
        "  hint: did you mean 'user_id'?\n"
        "wrong  bad   bad.yaml:1\n"
        "ok     good  good.yaml:1\n"
        "2 pipelines, 1 mistake\n"
    )


def run(*arguments: str) -> Result:
    return CliRunner().invoke(kaflow, ["validate", *arguments], prog_name="kaflow")


def test_sound_pipelines() -> None:
    write("one")
    write("two")
    result = run(".")
    assert result.exit_code == 0
    assert (
        result.stdout
        == f"ok  one  one.yaml:1\nok  two  two.yaml:1\n2 pipelines, 0 mistakes\n{LEFT}"
    )
    assert result.stderr == ""


def test_every_mistake_of_every_file() -> None:
    write("good")
    write("sql", key="user")
    Path("keys.yaml").write_text("name: keys\nqery: SELECT 1\noutput: {topic: out}\nwindow: 1x\n")
    result = run(".")
    assert result.exit_code == 10
    assert result.stderr == (
        "error: keys.yaml:2: unknown key 'qery'\n  hint: did you mean 'query'?\n"
        "error: keys.yaml:4: '1x' is not a duration\n"
        "  hint: write it as 500ms, 90s, 30m, 24h, 7d, 2w or 1h30m; at most 36500d\n"
        "error: sql.yaml:5: unknown column 'user' in 'p'\n  hint: did you mean 'user_id'?\n"
    )
    assert (
        result.stdout
        == "ok     good  good.yaml:1\nwrong  keys  keys.yaml:1\nwrong  sql   sql.yaml:1\n"
        "3 pipelines, 3 mistakes\n"
    )


def test_columns_that_are_not_known_yet() -> None:
    write("later", topics="")
    result = run("later.yaml")
    assert result.exit_code == 0
    assert result.stderr.startswith(
        "notice: later.yaml:3: the columns of topic 'events', 'people' are not known yet"
    )
    assert result.stdout.endswith(f"1 pipeline, 0 mistakes, 1 notice\n{LEFT}")


def test_the_rest_is_checked_while_columns_are_not_known() -> None:
    write("later", topics="emission: {type: smart, require: [teir]}\n")
    result = run(".")
    assert result.exit_code == 10
    assert "unknown output column 'teir'\n  hint: did you mean 'tier'?" in result.stderr


def test_json() -> None:
    write("good")
    write("sql", key="user")
    found = json.loads(run(".", "--json").stdout)
    assert [(each["name"], each["ok"]) for each in found["pipelines"]] == [
        ("good", True),
        ("sql", False),
    ]
    assert "output topics" in found["left"]
    assert found["mistakes"] == [
        {
            "message": "unknown column 'user' in 'p'",
            "file": "sql.yaml",
            "line": 5,
            "column": None,
            "hint": "did you mean 'user_id'?",
        }
    ]


def test_names_that_clash_among_sound_files() -> None:
    write("one")
    Path("two.yaml").write_text(Path("one.yaml").read_text())
    result = run(".")
    assert result.exit_code == 10
    assert "two pipelines have the same name" in result.stderr


def test_nothing_heavy_is_imported() -> None:
    write("one")
    code = f"""
import sys
from kaflow_engine.cli.main import kaflow
try:
    kaflow(["validate", "."])
except SystemExit as end:
    assert end.code == 0
print(sorted(set({sorted(HEAVY)!r}) & set(sys.modules)))
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.stderr == ""
    assert done.stdout.endswith(f"1 pipeline, 0 mistakes\n{LEFT}[]\n")
