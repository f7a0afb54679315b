"""`kaflow check` of one output, and of several; what they hold is made up."""

import json
from collections.abc import Sequence
from pathlib import Path

import pytest
from click.testing import CliRunner

from kaflow_engine.checks.results import CheckResult
from kaflow_engine.cli.main import kaflow
from kaflow_engine.model.checks import checks_of
from kaflow_engine.model.config import Config
from kaflow_engine.model.outputs.output_specs import Write
from kaflow_engine.model.specs import PipelineSpec
from kaflow_engine.runtime import output_checks
from kaflow_engine.runtime.output_checks import Checked

COLUMNS = "topics: {in: {columns: {id: BIGINT, amount: BIGINT}}}"
ONE = f"""name: p
query: SELECT id, amount FROM in
output: {{topic: out}}
checks: [{{unique: id}}]
{COLUMNS}
"""
SEVERAL = f"""name: p
outputs:
  - {{from: in, topic: all, checks: [{{unique: id}}]}}
  - {{from: in, topic: unchecked}}
  - {{query: SELECT amount FROM in, table: amounts, checks: [{{not_null: amount}}]}}
{COLUMNS}
"""


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch) -> list[tuple[str, Sequence[str]]]:
    """Which outputs are looked at, and which partitions; every check fails on one of two rows."""
    found: list[tuple[str, Sequence[str]]] = []

    def look(
        spec: PipelineSpec,
        write: Write,
        config: Config,
        last: int,
        partitions: Sequence[str] = (),
        most: int = 0,
    ) -> Checked:
        found.append((write.output.target, partitions))
        results = (
            CheckResult(check=check, passed=write.output.topic is not None, rows=2, failed=1)
            for check in checks_of(spec, write)
        )
        return Checked(what=write.output.target, rows=2, results=tuple(results))

    monkeypatch.setattr(output_checks, "check_output", look)
    return found


def check(folder: Path, pipeline: str, *options: str) -> tuple[int, str]:
    (folder / "p.yaml").write_text(pipeline)
    done = CliRunner().invoke(kaflow, ["check", "p", str(folder / "p.yaml"), *options])
    return done.exit_code, done.stdout


def test_of_one_output(tmp_path: Path, asked: list[tuple[str, Sequence[str]]]) -> None:
    code, said = check(tmp_path, ONE, "--json", "--docs", str(tmp_path / "docs"))
    assert (code, asked) == (0, [("out", ())])
    assert json.loads(said)["of"] == "out"
    assert {path.name for path in (tmp_path / "docs").iterdir()} == {"index.html", "p.html"}


def test_of_several(tmp_path: Path, asked: list[tuple[str, Sequence[str]]]) -> None:
    options = ["--partition", "2026-01-01", "--docs", str(tmp_path / "docs")]
    code, said = check(tmp_path, SEVERAL, *options)
    assert (code, asked) == (1, [("all", ()), ("amounts", ("2026-01-01",))])
    assert [line for line in said.splitlines() if "rows, " in line] == [
        "all: 2 rows, 1 checks passed, 0 failed",
        "amounts: 2 rows, 0 checks passed, 1 failed",
    ]
    pages = {path.name for path in (tmp_path / "docs").iterdir()}
    assert pages == {"index.html", "p.all.html", "p.amounts.html"}
    _, said = check(tmp_path, SEVERAL, "--json")
    assert [each["of"] for each in json.loads(said)["outputs"]] == ["all", "amounts"]


def test_without_checks(tmp_path: Path) -> None:
    bare = SEVERAL.replace("checks: [{unique: id}]", "").replace("checks: [{not_null: amount}]", "")
    (tmp_path / "p.yaml").write_text(bare.replace(", }", "}"))
    done = CliRunner().invoke(kaflow, ["check", "p", str(tmp_path / "p.yaml")])
    assert done.exit_code == 10
    assert "add checks: [{not_null: <column>}] to an output" in done.output
