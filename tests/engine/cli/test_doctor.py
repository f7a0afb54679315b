import json
import re
import shlex
import tomllib
from importlib.metadata import PackageNotFoundError
from pathlib import Path
from typing import Any

import pytest
import yaml
from click.testing import CliRunner

from kaflow_engine.cli import doctor
from kaflow_engine.cli.main import kaflow
from kaflow_engine.connectors.attached.kinds import ATTACHED
from kaflow_engine.connectors.sinks import SINKS
from kaflow_engine.connectors.sources.kinds import SOURCES
from kaflow_engine.extras import EXTRAS
from kaflow_engine.runtime.spark import machine
from kaflow_engine.runtime.spark.machine import Check

ROOT = Path(__file__).parents[3]
ROWS = yaml.safe_load((ROOT / "tests/fixtures/doctor/extras.yaml").read_text())

GOOD = Check(name="python", state="ok", found="3.11.7")
LATER = Check(name="broker jars", state="missing", found="not fetched", required=False, cure="x")
BAD = Check(name="java", state="missing", found="no Java >= 17 found", cure="install a JDK")


@pytest.mark.parametrize(("checks", "code"), [((GOOD, LATER), 0), ((GOOD, BAD), 1)])
def test_only_what_is_required_fails(
    monkeypatch: pytest.MonkeyPatch, checks: tuple[Check, ...], code: int
):
    monkeypatch.setattr(doctor, "inspect_machine", lambda needs: checks)
    done = CliRunner().invoke(doctor.command, [])
    assert done.exit_code == code
    assert done.output.splitlines()[-1] == ("lacking: java" if code else "ready to run pipelines")
    for check in checks:
        assert check.found in done.output
        assert (check.cure or "") in done.output


def test_json_holds_the_checks(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(doctor, "inspect_machine", lambda needs: (BAD,))
    done = CliRunner().invoke(doctor.command, ["--json"])
    assert done.exit_code == 1
    assert json.loads(done.output) == [
        {
            "name": "java",
            "state": "missing",
            "found": "no Java >= 17 found",
            "required": True,
            "cure": "install a JDK",
        }
    ]


def test_this_machine_can_run_pipelines():
    done = CliRunner().invoke(doctor.command, [])
    assert done.exit_code == 0, done.output


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row["title"].replace(" ", "-"))
def test_optional_parts(row: dict[str, Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    def version(name: str) -> str:
        if name in row.get("without", ()):
            raise PackageNotFoundError(name)
        return "1.0"

    monkeypatch.setattr(machine, "version", version)
    monkeypatch.setenv("COLUMNS", "200")
    monkeypatch.chdir(tmp_path)
    for name, text in row.get("files", {}).items():
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(text)
    done = CliRunner().invoke(kaflow, shlex.split(row["run"])[1:], prog_name="kaflow")
    said = [" ".join(line.split()) for line in done.output.splitlines()]
    assert [line for line in row["says"] if line not in said] == [], done.output
    assert done.exit_code == row["exit"]


def test_every_optional_part_has_a_row():
    parts = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["optional-dependencies"]
    names = {part: re.split(r"[^\w-]", wanted[0])[0] for part, wanted in parts.items()}
    names.pop("dev")
    assert {extra.name: extra.distribution for extra in EXTRAS.values()} == names
    for extra in EXTRAS.values():
        assert set(extra.outputs) <= set(SINKS)
        assert set(extra.sources) <= {*SOURCES, *ATTACHED}
