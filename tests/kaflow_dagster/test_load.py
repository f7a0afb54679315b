"""Loading a code location reads nothing again, is light, and right to Dagster's own commands."""
# pyright: basic

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from kaflow_engine.cli.init import write_project

pytestmark = pytest.mark.slow

ROOT = Path(__file__).parents[2]
MANY = 200
LOAD = """
import json, sys
import dagster as dg
import dagster.components
opened = []
sys.addaudithook(lambda event, what: opened.append(str(what[0])) if event == "open" else None)
from kaflow_dagster import definitions
found = definitions.defs()
repository = found.get_repository_def()
own = [name for name in opened if not name.endswith((".py", ".pyc"))]
read = [name for name in own if "/pipelines/" in name or "/models/" in name]
heavy = [name for name in ("pyspark", "great_expectations", "deltalake") if name in sys.modules]
names = repository.job_names
print(json.dumps({"read": read, "heavy": heavy, "jobs": len(names)}))
"""
MODEL = """
name: p{n}
query: |
  SELECT c.id, c.amount * {n} AS amount, u.country
  FROM clicks_{n} c LEFT JOIN users u ON c.user_id = u.user_id
output: {{topic: out_{n}, key: id}}
state: {{dimensions: [users]}}
checks: [{{not_null: id}}]
topics:
  clicks_{n}: {{columns: {{id: VARCHAR, user_id: VARCHAR, amount: DOUBLE}}}}
  users: {{columns: {{user_id: VARCHAR, country: VARCHAR}}}}
"""


def run(folder, *command, **environment):
    paths = os.pathsep.join([str(folder), str(ROOT), str(ROOT / "engine")])
    return subprocess.run(
        [sys.executable, *command],
        cwd=folder,
        env={**os.environ, "PYTHONPATH": paths, "DAGSTER_HOME": "", **environment},
        capture_output=True,
        text=True,
        check=False,
    )


def test_many_pipelines_load_without_being_read(tmp_path):
    folder = tmp_path / "shop"
    write_project(folder)
    for n in range(MANY):
        folder.joinpath("pipelines", f"p{n}.yaml").write_text(MODEL.format(n=n))
    read = run(folder, "-c", LOAD, DAGSTER_IS_DEV_CLI="1")
    assert read.returncode == 0, read.stderr
    assert len(json.loads(read.stdout)["read"]) >= MANY
    loaded = run(folder, "-c", LOAD)
    assert loaded.returncode == 0, loaded.stderr
    found = json.loads(loaded.stdout)
    assert found["jobs"] > MANY
    assert found["heavy"] == []
    assert found["read"] == []


@pytest.mark.parametrize(
    "command",
    [
        ["-m", "dagster", "definitions", "validate", "-w", "workspace.yaml"],
        ["-m", "dagster_dg_cli.cli", "check", "defs"],
        ["-m", "dagster_dg_cli.cli", "check", "yaml"],
    ],
    ids=lambda command: " ".join(command[1:4]),
)
def test_dagster_finds_nothing_wrong(tmp_path, command):
    folder = tmp_path / "shop"
    write_project(folder)
    read = run(folder, "-m", "dagster_dg_cli.cli", "utils", "refresh-defs-state")
    assert read.returncode == 0, read.stdout + read.stderr
    done = run(folder, *command)
    assert done.returncode == 0, done.stdout + done.stderr
    said = done.stdout + done.stderr
    assert not [line for line in said.splitlines() if "Warning" in line and "kaflow" in line]
