import json

import pytest
from click.testing import CliRunner

from kaflow_engine.cli import doctor
from kaflow_engine.runtime.spark.machine import Check

GOOD = Check(name="python", state="ok", found="3.11.7")
LATER = Check(name="broker jars", state="missing", found="not fetched", required=False, cure="x")
BAD = Check(name="java", state="missing", found="no Java >= 17 found", cure="install a JDK")


@pytest.mark.parametrize(("checks", "code"), [((GOOD, LATER), 0), ((GOOD, BAD), 1)])
def test_only_what_is_required_fails(
    monkeypatch: pytest.MonkeyPatch, checks: tuple[Check, ...], code: int
):
    monkeypatch.setattr(doctor, "inspect_machine", lambda: checks)
    done = CliRunner().invoke(doctor.command, [])
    assert done.exit_code == code
    assert done.output.splitlines()[-1] == ("lacking: java" if code else "ready to run pipelines")
    for check in checks:
        assert check.found in done.output
        assert (check.cure or "") in done.output


def test_json_holds_the_checks(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(doctor, "inspect_machine", lambda: (BAD,))
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
