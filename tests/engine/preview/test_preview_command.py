"""`kaflow preview` over files: what each node has, and nothing that stays."""

import json
from pathlib import Path
from typing import Any

import pytest
import yaml
from click.testing import CliRunner, Result

from kaflow_engine.cli.main import kaflow

ROWS = [
    pytest.param(row, id=row["title"])
    for row in yaml.safe_load(
        Path(__file__).parents[2].joinpath("fixtures/preview/files.yaml").read_text()
    )
]
SETTINGS = ("--set", "postgres.connections.default.url=postgresql://nobody@127.0.0.1:1/none")


def run(*arguments: str) -> Result:
    return CliRunner().invoke(kaflow, ["preview", *arguments, *SETTINGS], prog_name="kaflow")


def write(row: dict[str, Any]) -> None:
    Path("p.yaml").write_text(yaml.safe_dump(row["pipeline"]))
    Path("in").mkdir()
    Path("in/a.json").write_text("".join(json.dumps(each) + "\n" for each in row["records"]))


@pytest.mark.parametrize("row", ROWS)
def test_rows(row: dict[str, Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    write(row)
    before = sorted(tmp_path.rglob("*"))
    done = run("p.yaml", "--from", "earliest", *row["options"])
    assert done.exit_code == 0, done.output
    found = [json.loads(line) for line in done.stdout.splitlines()]
    assert sorted(found, key=str) == sorted(row["expect"], key=str)
    assert sorted(tmp_path.rglob("*")) == before
