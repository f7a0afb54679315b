"""Mistakes of files that say what is served: rows of `fixtures/errors/serving.yaml`."""
# pyright: basic

import shutil
from pathlib import Path

import pytest
import yaml
from click.testing import CliRunner

from kaflow_engine.cli.main import kaflow
from kaflow_engine.errors import KaflowError
from kaflow_engine.model.config import Config
from kaflow_engine.serving.checks import check_serve_file
from kaflow_engine.serving.serve import serving
from tests.engine.serving.test_answers import CLOCKS, CONFIG, ENVIRONMENT, write_databases
from tests.page import blocks

FIXTURES = Path(__file__).parents[2] / "fixtures"


def rows():
    found = yaml.load((FIXTURES / "errors" / "serving.yaml").read_text(), yaml.CSafeLoader)
    return [pytest.param(row, id=row["title"]) for row in found]


@pytest.mark.parametrize("row", rows())
def test_mistake(row, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    text = (FIXTURES / "serving" / "serve.yml").read_text()
    for change in row["change"]:
        assert change["old"] in text
        text = text.replace(change["old"], change["new"], 1)
    path = Path("serve.yml")
    path.write_text(text)
    config = Config.model_validate(row.get("configuration", CONFIG))
    variables = row.get("variables", ENVIRONMENT)
    if "open" in row:
        write_databases(tmp_path)
        serve = check_serve_file(path, config, variables)
        with pytest.raises(KaflowError) as raised, serving(serve, CLOCKS):
            pass
    else:
        with pytest.raises(KaflowError) as raised:
            check_serve_file(path, config, variables)
    assert str(raised.value) == row["error"].replace("{folder}", str(tmp_path))


def test_the_file_of_the_page_is_right(tmp_path):
    (text,) = blocks("yaml", "serve.md")
    (tmp_path / "serve.yml").write_text(text)
    settings = {"sql": {"attach": ["postgres"]}, "secrets": {"office_token": "word-of-office"}}
    variables = {"SQLFLOW_POSTGRES_URI": "postgresql://me@host/db", **ENVIRONMENT}
    serve = check_serve_file(tmp_path / "serve.yml", Config.model_validate(settings), variables)
    assert [*serve.datasets] == ["posts_by_lang", "totals"]
    (read,) = serve.datasets["posts_by_lang"].statements["5m"].reads
    assert [f"{each.column} {each.operator}" for each in read.conditions] == [
        "bucket >=",
        "bucket <",
    ]


def test_pipelines_and_what_is_served_stand_beside_each_other(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("SQLFLOW_SERVE_TOKEN", "word-of-page")
    shutil.copy(FIXTURES / "serving" / "serve.yml", tmp_path)
    shutil.copy(FIXTURES / "sqlflow" / "window.yml", tmp_path)
    (tmp_path / "kaflow.yaml").write_text(yaml.safe_dump(CONFIG))
    done = CliRunner().invoke(kaflow, ["validate", "."])
    assert done.exit_code == 0, done.stderr
    assert "1 pipeline, 0 mistakes" in done.stdout
    assert "what is served: serve.yml" in done.stdout
    done = CliRunner().invoke(kaflow, ["validate", "serve.yml"])
    assert done.exit_code == 0, done.stderr
    done = CliRunner().invoke(kaflow, ["explain", "serve.yml"])
    assert done.exit_code == 10
    assert "serve.yml: this file says what is served, and is no pipeline" in done.stderr
    assert "hint: run kaflow serve serve.yml" in done.stderr
    (tmp_path / "serve.yml").write_text("serve: {}\n")
    done = CliRunner().invoke(kaflow, ["validate", "."])
    assert done.exit_code == 10
    assert "serve.yml:1: 'serve.auth' is required" in done.stderr
    done = CliRunner().invoke(kaflow, ["serve", "window.yml"])
    assert done.exit_code == 10
    assert "window.yml: this file does not say what is served" in done.stderr
