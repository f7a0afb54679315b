"""Files of Streamling on the command line: found where nothing is named, checked in its form."""

import json
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from kaflow_engine.cli.main import kaflow as main

QUICK = Path(__file__).parents[2] / "fixtures" / "streamling" / "seed" / "quick_start.yaml"
LOCATION = "STREAMLING__PIPELINE_DEFINITION_LOCATION"


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv(LOCATION, raising=False)
    return tmp_path


def kaflow(*arguments: str) -> Result:
    return CliRunner().invoke(main, arguments, prog_name="kaflow")


def test_the_file_is_that_of_the_variable_or_pipeline_yaml(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder.joinpath("pipeline.yaml").write_text(QUICK.read_text())
    assert "ok  pipeline  pipeline.yaml:1" in kaflow("validate").output
    folder.joinpath("other.yaml").write_text(QUICK.read_text())
    monkeypatch.setenv(LOCATION, "other.yaml")
    assert "ok  other  other.yaml:1" in kaflow("validate").output
    assert "ok  pipeline  pipeline.yaml:1" in kaflow("validate", "pipeline.yaml").output


@pytest.mark.parametrize("command", ["run", "validate"])
def test_without_any_file_the_command_says_what_it_takes(command: str) -> None:
    done = kaflow(command)
    assert done.exit_code == 2
    assert f"Missing argument 'PATH…'; or set {LOCATION}, or write pipeline.yaml." in done.output


def test_run_takes_the_file_of_the_variable(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder.joinpath("wrong.yaml").write_text(QUICK.read_text().replace("from:", "form:"))
    monkeypatch.setenv(LOCATION, "wrong.yaml")
    done = kaflow("run")
    assert done.exit_code == 10
    assert "wrong.yaml:17: unknown key 'form'" in done.output


def test_a_dry_run_shows_what_a_run_would_do_and_ends(folder: Path) -> None:
    text = QUICK.read_text().replace(
        "topic: raw", "data_format: json\n    schema: {id: BIGINT, amount: DOUBLE}\n    topic: raw"
    )
    folder.joinpath("pipeline.yaml").write_text(text)
    done = kaflow("run", "--dry-run")
    assert (done.exit_code, done.output) == (0, kaflow("explain", "pipeline.yaml").output)
    (plan,) = json.loads(kaflow("run", "--dry-run", "--json").stdout)
    assert plan["name"] == "pipeline"
    assert [path.name for path in folder.iterdir()] == ["pipeline.yaml"]
    folder.joinpath("pipeline.yaml").write_text(text.replace("amount > 1000", "price > 1000"))
    done = kaflow("run", "--dry-run")
    assert done.exit_code == 10
    assert "pipeline.yaml:15: unknown column 'price'" in done.output


def test_json_of_validate_has_what_streamling_prints(folder: Path) -> None:
    folder.joinpath("pipeline.yaml").write_text(QUICK.read_text())
    found = json.loads(kaflow("validate", "--json").stdout)
    told = {key: found[key] for key in ("success", "is_valid", "errors", "warnings")}
    unknown = "the columns of topic 'raw.event.transaction' are not known yet"
    (warning,) = told.pop("warnings")
    assert warning.startswith(f"pipeline.yaml:4: {unknown}")
    assert told == {"success": True, "is_valid": True, "errors": []}
    folder.joinpath("pipeline.yaml").write_text(QUICK.read_text().replace("type: sql", "type: sq"))
    found = json.loads(kaflow("validate", "--json").stdout)
    assert (found["success"], found["is_valid"]) == (True, False)
    assert found["errors"] == ["pipeline.yaml:8: unknown type 'sq'\n  hint: did you mean 'sql'?"]
