"""The package that `kaflow init --plugin` writes: installed, tested by its laws, run by Spark."""
# pyright: basic

import json
import os
import sqlite3
import subprocess
import sys
from collections import Counter

import pytest
import yaml
from click.testing import CliRunner

from kaflow_engine.cli.main import kaflow
from tests.acceptance.three_days import CLICKS, DAYS, load

pytestmark = [pytest.mark.spark, pytest.mark.kafka]

CLICKED = range(DAYS * 144)


@pytest.fixture(scope="module")
def package(tmp_path_factory):
    """Write the package, and install it into a folder that PYTHONPATH has to name."""
    folder = tmp_path_factory.mktemp("plugin") / "acme.tally"
    made = CliRunner().invoke(kaflow, ["init", "--plugin", str(folder)], prog_name="kaflow")
    assert made.exit_code == 0, made.output
    pip = [sys.executable, "-m", "pip", "--disable-pip-version-check", "install", "--quiet"]
    target = folder.parent / "site"
    alone = ["--no-deps", "--no-build-isolation", "--target", str(target)]
    subprocess.run([*pip, *alone, str(folder)], check=True)
    return folder, {**os.environ, "PYTHONPATH": str(target)}


def run(package, *arguments, cwd=None):
    folder, environment = package
    done = subprocess.run(
        [sys.executable, "-m", *arguments],
        env=environment,
        cwd=cwd or folder,
        capture_output=True,
        text=True,
    )
    return done.returncode, done.stdout + done.stderr


def test_it_keeps_the_laws(package):
    code, said = run(package, "pytest", "-q", "-p", "no:cacheprovider", "tests")
    assert code == 0, said
    assert "8 passed" in said


def test_its_example_is_planned(package):
    code, said = run(package, "kaflow_engine.cli.main", "explain", "pipelines/example.yaml")
    assert code == 0, said
    assert "exactly once: rows and the number of their batch are one transaction" in said


def test_rows_are_there_once(package, broker, tmp_path, unique):
    load(broker, "plug")
    tmp_path.joinpath("kaflow.yaml").write_text(
        yaml.safe_dump(
            {
                "kafka": {"brokers": broker.bootstrap},
                "state": {"rocksdb": {"path": str(tmp_path / "state")}},
                "max_records": 150,
                "http": {"port": 0},
            }
        )
    )
    pipeline = {
        "name": unique,
        "outputs": [
            {
                "query": 'SELECT id, u FROM "plug.clicks"',
                "type": "acme.tally",
                "options": {"file": str(tmp_path / "rows.db")},
            }
        ],
        "topics": {"plug.clicks": CLICKS},
    }
    tmp_path.joinpath("p.yaml").write_text(yaml.safe_dump(pipeline, sort_keys=False))
    for _ in range(2):
        code, said = run(
            package,
            *("kaflow_engine.cli.main", "run", "p.yaml", "--until-caught-up"),
            cwd=tmp_path,
        )
        assert code == 0, said
    with sqlite3.connect(tmp_path / "rows.db") as file:
        rows = [json.loads(row) for (row,) in file.execute("SELECT row FROM rows")]
        batches = file.execute("SELECT max(batch) FROM kaflow_ledger").fetchone()
    assert Counter(row["id"] for row in rows) == Counter(CLICKED)
    assert batches[0] > 1
