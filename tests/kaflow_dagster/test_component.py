"""The component: what `dg dev` and production load."""

# pyright: basic

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
LOAD = """
import json
import dagster as dg
from kaflow_dagster import definitions

found = definitions.defs()
assets = {"/".join(spec.key.path): spec.description for spec in found.resolve_all_asset_specs()}
names = [sensor.name for sensor in found.sensors]
print(json.dumps({"assets": assets, "sensors": names}))
"""
PROJECT = """
[tool.dg]
directory_type = "project"
[tool.dg.project]
root_module = "definitions"
defs_module = "definitions"
"""
COMPONENT = """
type: kaflow_dagster.KaflowProjectComponent
attributes:
  paths: ["{{ context.project_root }}/pipelines"]
  translation:
    description: "{{ name }} of our shop"
"""
PIPELINE = """
name: large
query: SELECT id FROM orders WHERE id > '5'
output: {topic: large_orders, key: id}
topics:
  orders: {columns: {id: VARCHAR}}
"""

pytestmark = pytest.mark.slow


def load(folder: Path, **environment: str) -> subprocess.CompletedProcess[str]:
    paths = os.pathsep.join([str(folder), str(ROOT), str(ROOT / "engine")])
    return subprocess.run(
        [sys.executable, "-W", "error::DeprecationWarning:kaflow_dagster", "-c", LOAD],
        cwd=folder,
        env={**os.environ, "PYTHONPATH": paths, "DAGSTER_HOME": "", **environment},
        capture_output=True,
        text=True,
        check=False,
    )


@pytest.fixture
def project(tmp_path: Path) -> Path:
    files = {
        "pyproject.toml": PROJECT,
        "definitions/__init__.py": "",
        "definitions/defs.yaml": COMPONENT,
        "pipelines/large.yaml": PIPELINE,
        "pipelines/broken.yaml": PIPELINE.replace("large", "broken").replace("id FROM", "x FROM"),
    }
    for name, text in files.items():
        path = tmp_path / name
        path.parent.mkdir(exist_ok=True)
        path.write_text(text)
    return tmp_path


def test_a_project_is_read_when_developing_and_loaded_afterwards(project):
    done = load(project, DAGSTER_IS_DEV_CLI="1")
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    assert found["sensors"] == ["supervise__broken", "supervise__large"]
    assert found["assets"]["kafka/orders"] == "orders of our shop"
    assert set(found["assets"]) == {
        "kafka/orders",
        "kafka/large_orders",
        "kafka/large.dead_letters",
        "streams/large",
        "streams/broken",
    }
    (project / "pipelines" / "large.yaml").unlink()
    assert json.loads(load(project).stdout) == found  # from what was read before


def test_nothing_that_was_read_is_no_empty_page(project):
    done = load(project)
    assert done.returncode != 0
    assert "the project has not been read yet" in done.stderr
    assert "dg utils refresh-defs-state" in done.stderr


def test_the_example_project_loads():
    done = load(ROOT, DAGSTER_IS_DEV_CLI="1")
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)["assets"]
    assert {"kafka/order_facts", "tables/orders_by_day", "daily_revenue"} <= set(found)
    assert "supervise__example" in json.loads(done.stdout)["sensors"]
