"""The image: sound by its linter, locked, without rights it does not need, and healthy or not."""

import json
import os
import re
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest
from click.testing import CliRunner

from kaflow_engine.cli.main import kaflow
from kaflow_engine.extras import EXTRAS
from kaflow_engine.model.config import HttpConfig
from kaflow_engine.model.configuration.load_config import load_config
from kaflow_engine.telemetry.metrics.metrics import Metrics
from kaflow_engine.telemetry.server import serve
from tests.deploy.reading import (
    DEPLOY,
    ROOT,
    check_kaflow,
    health_command,
    image_environment,
    instructions,
)

ELSEWHERE = ("airflow", "java")
"""Extras of other environments, and of machines without Java."""
PINNED = re.compile(r"^(\S+==\S+)", re.MULTILINE)


def test_the_linter_finds_nothing():
    path = os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]])
    linter = shutil.which("hadolint", path=path)
    assert linter is not None
    done = subprocess.run([linter, DEPLOY / "Dockerfile"], capture_output=True, text=True)
    assert (done.returncode, done.stdout) == (0, "")


def test_it_runs_as_nobody_in_particular():
    users = [rest for name, rest in instructions() if name == "USER"]
    assert users == ["10001:10001"]
    later = [name for name, _ in instructions()[instructions().index(("USER", users[0])) :]]
    assert not {"RUN", "COPY", "ADD"} & set(later)


def test_one_process_gets_the_signals():
    found = dict(instructions())
    assert found["ENTRYPOINT"] == '["tini", "--", "kaflow"]'
    assert found["STOPSIGNAL"] == "SIGTERM"


def test_without_arguments_it_runs_what_is_mounted(tmp_path, monkeypatch):
    fixtures = ROOT / "tests" / "fixtures"
    (tmp_path / "pipelines").mkdir()
    shutil.copy(fixtures / "pipelines" / "user_enrichment.yaml", tmp_path / "pipelines")
    shutil.copy(fixtures / "config" / "get_started.yaml", tmp_path / "config.yaml")
    arguments = json.loads(dict(instructions())["CMD"])
    assert arguments[0] == "run"
    check_kaflow(arguments)
    for name, value in image_environment().items():
        monkeypatch.setenv(name, value)
    here = [argument.replace("/app", str(tmp_path)) for argument in arguments[1:]]
    done = CliRunner().invoke(kaflow, ["validate", *here])
    assert done.exit_code == 0, done.output
    assert "1 pipeline, 0 mistakes" in done.output
    shown = CliRunner().invoke(kaflow, ["config", "show", *here[-2:]]).output
    assert re.search(r"state.rocksdb.path +/data/rocksdb +.*config.yaml:8", shown)
    (made,) = [rest for name, rest in instructions() if name == "RUN" and "mkdir" in rest]
    assert "chown kaflow:kaflow /project /app /data" in made


def test_its_settings_exist():
    environment = image_environment()
    config = load_config(None, environment)
    # with nothing but what a user mounts it starts, and no one else reaches its port
    assert config.http.host == "127.0.0.1"
    assert config.http.port == int(dict(instructions())["EXPOSE"])
    volume = '"/var/lib/kaflow"'
    assert volume in dict(instructions())["VOLUME"]
    for path in (config.state.rocksdb.path, config.warehouse):
        assert path.startswith("/var/lib/kaflow/")


def test_the_commands_it_is_built_with_exist():
    said = [rest for name, rest in instructions() if name == "RUN"]
    (doctor,) = [re.findall(r"kaflow doctor [^&]*", text) for text in said if "doctor" in text]
    check_kaflow(doctor[0].split()[1:])


def test_it_holds_locked_packages_and_no_tools_of_developers():
    image = PINNED.findall((ROOT / "requirements-image.lock").read_text())
    everything = PINNED.findall((ROOT / "requirements.lock").read_text())
    assert set(image) <= set(everything)
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    plain = {re.split(r"[\[=]", name)[0] for name in image}
    names = {re.split(r"[\[<>=]", name)[0] for name in project["dependencies"]}
    assert names <= plain
    tools = {re.split(r"[\[<>=]", name)[0] for name in project["optional-dependencies"]["dev"]}
    assert not tools & plain


def test_another_choice_of_packages_adds_all_drivers():
    text = (DEPLOY / "Dockerfile").read_text()
    assert re.findall(r"^ARG (.*)$", text, re.MULTILINE) == ["PACKAGES=image"]
    drivers, image, everything = (
        set(PINNED.findall((ROOT / f"requirements{name}.lock").read_text()))
        for name in ("-drivers", "-image", "")
    )
    assert image < drivers <= everything
    plain = {re.split(r"[\[=]", name)[0] for name in drivers}
    needed = {extra.distribution for name, extra in EXTRAS.items() if name not in ELSEWHERE}
    assert needed <= plain


def test_its_context_holds_what_it_copies():
    kept = (DEPLOY / "Dockerfile.dockerignore").read_text().split("\n")
    copied = [rest.split()[:-1] for name, rest in instructions() if name == "COPY"]
    outside = [path for paths in copied for path in paths if not paths[0].startswith("--from")]
    assert [line for line in kept if line and line[0] not in "#!"] == ["*"]
    assert sorted(outside) == sorted(line[1:] for line in kept if line.startswith("!"))


@pytest.mark.parametrize("runs", [True, False])
def test_its_health_needs_no_token(runs):
    with serve(HttpConfig(port=0, token="s3cret"), Metrics()) as address:
        port = address.rpartition(":")[2]
        if runs:
            done = health(port)
    if not runs:
        done = health(port)
    assert (done.returncode == 0) == runs


def health(port: str) -> "subprocess.CompletedProcess[bytes]":
    environment = {**os.environ, "KAFLOW__HTTP__PORT": port}
    return subprocess.run(health_command(), env=environment, capture_output=True, timeout=30)
