"""Each code block of the operations page does what it says.

Its commands of `kaflow` run in `test_readme.py`, behind the pipeline of the first page; `curl` runs
in `acceptance/test_troubles.py`, where a process has a port.
"""
# pyright: basic

import subprocess

import pytest

from kaflow_engine.model.configuration.load_config import load_config
from tests.page import blocks, commands, first_words
from tests.test_readme import ROOT

SETTINGS = blocks("yaml", "operations.md")
ELSEWHERE = [*first_words("kaflow", "state"), *first_words("kaflow", "plan"), *first_words("curl")]


@pytest.mark.parametrize("number", range(len(SETTINGS)))
def test_settings_load(number, tmp_path, monkeypatch):
    for name in ("password", "http-token"):
        (tmp_path / name).write_text("a secret of a file")
    for name in ("S3_ACCESS_KEY", "S3_SECRET_KEY", "KAFKA_USER"):
        monkeypatch.setenv(name, "what the environment says")
    text = SETTINGS[number].replace("/run/secrets/kaflow", str(tmp_path))
    file = tmp_path / "kaflow.yaml"
    file.write_text(text)
    config = load_config(file)
    wanted = {line.rstrip(":") for line in text.splitlines() if line[0].isalpha()}
    assert wanted <= config.model_fields_set


@pytest.mark.parametrize("command", [c for c in commands("operations.md") if c not in ELSEWHERE])
def test_make_target(command):
    program, target = command.split()
    assert program == "make"
    done = subprocess.run(
        [program, "--dry-run", target], cwd=ROOT, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr


def test_commands_of_every_kind_are_there():
    assert len(SETTINGS) >= 4
    assert len(ELSEWHERE) >= 7
