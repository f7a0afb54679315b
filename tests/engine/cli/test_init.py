"""`kaflow init`: what it writes works."""

# pyright: basic

from pathlib import Path

import pytest
from click.testing import CliRunner

from kaflow_engine.cli.main import kaflow


def run(*arguments: str):
    return CliRunner().invoke(kaflow, arguments, prog_name="kaflow")


@pytest.fixture(autouse=True)
def _in_a_folder_of_its_own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def test_a_new_project_is_sound_and_its_cases_pass(monkeypatch):
    made = run("init", "shop")
    assert made.exit_code == 0, made.output
    assert "shop/.gitignore" in made.output
    assert 'name = "shop"' in Path("shop/pyproject.toml").read_text()
    monkeypatch.chdir("shop")
    checked = run("validate", ".")
    assert checked.exit_code == 0, checked.output
    assert "\n2 pipelines, 0 mistakes\n" in checked.output
    tested = run("test", "tests")
    assert tested.exit_code == 0, tested.output


def test_what_is_there_is_left_alone():
    assert run("init", "shop").exit_code == 0
    again = run("init", "shop")
    assert (again.exit_code, again.output) == (
        10,
        "error: 'shop' exists already\n  hint: choose another name\n",
    )


def test_a_name_that_is_none():
    refused = run("init", "1 shop")
    assert refused.exit_code == 10
    assert "'1 shop' is not a name for a project" in refused.output
