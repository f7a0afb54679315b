"""`kaflow test`: case files of a project, found, run and summed up."""

import json
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from kaflow_engine.cli.main import kaflow

CASES = """\
- case: what is given comes out
  pipeline: copy
  topics: {numbers: {id: VARCHAR, n: BIGINT}}
  given:
    - {topic: numbers, at: 0, value: {id: a, n: 1}}
    - {topic: numbers, at: 0, value: {id: a, n: 2}}
  expect:
    - {key: a, value: {id: a, n: 1}}
    - {key: a, value: {id: a, n: %s}}
"""


@pytest.fixture(autouse=True)
def _project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    for folder in ("pipelines", "tests"):
        Path(folder).mkdir()
    Path("pipelines/copy.yaml").write_text(
        "name: copy\nquery: SELECT id, n FROM numbers\noutput: {topic: out, key: id}\n"
    )


def write(name: str, second: int) -> None:
    Path(f"tests/{name}.yml").write_text(CASES % second)


def run(*arguments: str) -> Result:
    return CliRunner().invoke(kaflow, ["test", *arguments], prog_name="kaflow")


def test_cases_that_hold() -> None:
    write("good", 2)
    result = run(".", "--cuts", "random:2", "--replay")
    assert result.exit_code == 0, result.output
    assert result.stdout == "ok      what is given comes out\n1 passed, 0 failed\n"


def test_a_case_that_fails() -> None:
    write("bad", 3)
    write("good", 2)
    result = run("tests")
    assert result.exit_code == 1
    assert result.stdout.startswith("FAILED  what is given comes out\n        tests/bad.yml:1\n")
    assert '  ≠ out a {"id":"a","n":3}' in result.stdout
    assert result.stdout.endswith("ok      what is given comes out\n1 passed, 1 failed\n")


def test_json() -> None:
    write("bad", 3)
    result = run("tests/bad.yml", "--json", "--cuts", "each")
    found = json.loads(result.stdout)
    assert result.exit_code == 1
    assert (found["passed"], found["failed"]) == (0, 1)
    (case,) = found["cases"]
    assert (case["file"], case["line"], case["cuts"]) == ("tests/bad.yml", 1, "each")
    assert case["differences"][0]["part"] == "rows"


def test_mistakes_of_all_case_files_come_first() -> None:
    write("good", 2)
    for name in ("one", "two"):
        Path(f"tests/{name}.yml").write_text("- case: x\n  pipelin: copy\n  expect: []\n")
    result = run("tests")
    assert result.exit_code == 10
    assert result.stdout == ""
    assert result.stderr.count("unknown key 'pipelin'\n  hint: did you mean 'pipeline'?") == 2


def test_cuts_that_do_not_exist() -> None:
    result = run("tests", "--cuts", "som")
    assert result.exit_code == 2
    assert "unknown cuts 'som'; write given, each, all or random:20" in result.stderr


def test_another_folder_of_pipelines() -> None:
    write("good", 2)
    Path("elsewhere").mkdir()
    result = run("tests", "--project", "elsewhere")
    assert result.exit_code == 1
    assert "unknown pipeline 'copy'" in result.stdout
