"""In Airflow's own environment: the DAG of the page against a broker, and how tasks end."""
# pyright: basic

import json
import shutil
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import polars as pl
import pytest
import yaml
from click.testing import CliRunner

from kaflow_engine.cli.fakegen import command as fakegen
from kaflow_engine.model.config import HttpConfig
from kaflow_engine.telemetry.metrics.metrics import Metrics
from kaflow_engine.telemetry.server import serve
from kaflow_engine.testing.services.child import free_ports
from tests.engine.airflow.environment import ROOT, airflow_here, variables
from tests.page import blocks

pytestmark = [pytest.mark.spark, pytest.mark.kafka]

HERE = Path(__file__).parent
ROWS = yaml.safe_load((ROOT / "tests/fixtures/airflow/endings.yaml").read_text())
KAFLOW = Path(sys.executable).with_name("kaflow")
ENDED = "[DAG TEST] end task task_id="
NOT_READY = "not all its pipelines are running"
RATE, RECORDS = "0.004", "800"
"""Two days and some hours of sample records."""


@pytest.fixture(scope="module")
def home(tmp_path_factory):
    """A home of Airflow with an empty database, and the DAGs."""
    place = tmp_path_factory.mktemp("airflow")
    shutil.copy(airflow_here() / "home" / "airflow.db", place)
    (place / "dags").mkdir()
    shutil.copy(HERE / "rows_dag.py", place / "dags")
    (place / "rows.json").write_text(json.dumps(ROWS))
    return place


@pytest.fixture(scope="module")
def shop(home, broker):
    """The project of the page, and its topics."""
    place = home / "shop"
    shutil.copytree(ROOT / "dbt_style_models", place)
    topics = ["--topics", "shop.orders,shop.customers", "--brokers", broker.bootstrap]
    options = ["--rate", RATE, "--max-records", RECORDS, "--fast", "--partitions", "1"]
    sent = CliRunner().invoke(fakegen, [*topics, *options])
    assert sent.exit_code == 0, sent.output
    return place


@pytest.fixture(scope="module")
def done(home, shop, broker):
    """Run both DAGs; return what became of their tasks, and what each said."""
    stream = Metrics(["orders"])
    with serve(HttpConfig(port=0), stream) as address:
        (page,) = [block for block in blocks("python", "airflow.md") if "with DAG(" in block]
        for named, here in (
            ("/srv/shop", str(shop)),
            ("/opt/kaflow/bin/kaflow", str(KAFLOW)),
            ("http://127.0.0.1:8080", address),
        ):
            assert named in page
            page = page.replace(named, here)
        (home / "dags" / "page_dag.py").write_text(page)
        said = run_dags(home, broker, on_line=lambda line: become_ready(stream, line))
    found = {
        name: json.loads((home / f"{name}.json").read_text()) for name in ("page_dag", "rows_dag")
    }
    return found, said


def become_ready(stream, line):
    """Let the stream run as soon as someone has heard that it does not."""
    if NOT_READY in line:
        stream.take(replace(stream.newest["orders"], state="running"))


def run_dags(home, broker, on_line):
    """Run the DAGs as their author would; return task to the lines of its log."""
    command = [str(airflow_here() / "bin" / "python"), str(HERE / "run_dags.py")]
    (closed,) = free_ports(1)
    here = {
        "KAFKA_BROKERS": broker.bootstrap,
        "FAKE": str(HERE / "kaflow.sh"),
        "UNUSED_ADDRESS": f"http://127.0.0.1:{closed}",
    }
    running = subprocess.Popen(
        [*command, "rows_dag", "page_dag"],
        env={**variables(home), **here},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )
    said, lines = {}, []
    with running:
        for line in running.stdout:
            on_line(line)
            lines.append(line.rstrip())
            if ENDED in line:
                task = line.split(ENDED)[1].split()[0]
                said[task] = said.get(task, []) + lines
                lines = []
    assert running.returncode == 0, "\n".join(lines)
    return said


def test_the_dag_of_the_page(done, shop):
    found, said = done
    tasks = found["page_dag"]
    assert {name: task["state"] for name, task in tasks.items()} == dict.fromkeys(
        ("stream_is_ready", "catch_up", "fill", "check"), "success"
    ), "\n".join(line for lines in said.values() for line in lines)
    waited = "\n".join(said["stream_is_ready"])
    assert waited.index(NOT_READY) < waited.index("all its pipelines are running", -1000)
    (caught_up,) = tasks["catch_up"]["returned"]["pipelines"]
    (filled,) = tasks["fill"]["returned"]["pipelines"]
    assert (caught_up["ending"], filled["ending"]) == ("caught up", "caught up")
    table = pl.read_delta(str(shop / "warehouse" / "orders_by_day"))
    days = dict(table.group_by("_day").len().iter_rows())
    assert len(days) == 3
    assert caught_up["emitted"] == table.height
    assert f"table 'orders_by_day', 2026-01-01: {days[min(days)]} rows" in "\n".join(said["check"])


@pytest.mark.parametrize("number", range(len(ROWS)), ids=[row["title"] for row in ROWS])
def test_how_a_task_ends(done, home, number):
    row, task = ROWS[number], f"row_{number}"
    found, said = done
    log = home / f"{task}.log"
    typed = log.read_text().splitlines() if log.exists() else []
    text = "\n".join(said[task])
    assert found["rows_dag"][task] == {"state": row["state"], "returned": row.get("returned")}, text
    assert len(typed) == row["tries"], text
    assert not typed or set(typed) == {row.get("typed", typed[0])}
    for line in row.get("logged", "").splitlines():
        assert line in text


@pytest.mark.parametrize(("soft", "state"), [(False, "failed"), (True, "skipped")])
def test_a_stream_that_does_not_become_ready(done, soft, state):
    found, said = done
    task = f"never_ready_{soft}"
    assert found["rows_dag"][task]["state"] == state
    text = "\n".join(said[task])
    assert "Pausing task as DEFERRED" in text
    assert "it does not answer (" in text.partition("Trigger completed")[2]
    assert soft or "no stream is ready at http://127.0.0.1:" in text


def test_stubs_declare_what_airflow_has(done, home):
    found = json.loads((home / "stubs.json").read_text())
    assert len(found) > 2
    assert [wrong for wrong in found.items() if wrong[1]] == []
