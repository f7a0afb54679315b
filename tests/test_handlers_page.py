"""The page of handlers: its pipeline is planned, and its service answers what that reads."""
# pyright: basic

import json
import subprocess
import sys
import time

import pyarrow as pa
import yaml
from click.testing import CliRunner

from kaflow_engine.cli.main import kaflow
from kaflow_engine.errors import Location
from kaflow_engine.flow.records import RECORDS
from kaflow_engine.model.config import Config
from kaflow_engine.model.pipelines.loader import pipeline_from_mapping
from kaflow_engine.plan.planner.pipeline_plan import build_plan, declared_columns
from kaflow_engine.testing.local.executor import LocalPipeline
from kaflow_engine.testing.services.child import free_ports, listening
from tests.page import blocks

PAGE = "handlers.md"
PIPELINE, SETTINGS = blocks("yaml", PAGE)


def test_the_pipeline_of_the_page_is_planned(tmp_path, monkeypatch):
    monkeypatch.setenv("CRM_TOKEN", "word-of-crm")
    relation = "    secret_headers: {Authorization: crm}\n    batch: 100\n"
    tmp_path.joinpath("pipeline.yaml").write_text(PIPELINE.replace("    batch: 100\n", relation))
    tmp_path.joinpath("kaflow.yaml").write_text(SETTINGS)
    monkeypatch.chdir(tmp_path)
    for more in ((), ("--json",)):
        said = CliRunner().invoke(kaflow, ["explain", "pipeline.yaml", *more])
        assert said.exit_code == 0, said.output
        assert "asks http://127.0.0.1:9000/score, 100 rows a request" in said.output
        assert "word-of-crm" not in said.output


def test_the_service_of_the_page_answers(tmp_path):
    (service,) = blocks("python", PAGE)
    (port,) = free_ports(1)
    script = tmp_path / "service.py"
    script.write_text(service)
    with subprocess.Popen([sys.executable, script, str(port)], stderr=subprocess.DEVNULL) as child:
        try:
            until = time.monotonic() + 30
            while not listening(port) and time.monotonic() < until:
                assert child.poll() is None
            assert sorted(risks_of(port)) == [(1, "high")]
        finally:
            child.terminate()


def risks_of(port):
    spec = pipeline_from_mapping(
        yaml.safe_load(PIPELINE.replace(":9000/", f":{port}/")), Location("p.yaml")
    )
    columns = {"orders": declared_columns(spec, "orders")}
    running = LocalPipeline(build_plan(spec, Config(), columns).plan, {"orders": [0]})
    orders = [{"id": 1, "amount": 700}, {"id": 2, "amount": 7}]
    rows = [
        {
            "topic": "orders",
            "partition": 0,
            "offset": offset,
            "timestamp": 0,
            "key": b"k",
            "value": json.dumps(order).encode(),
            "headers": [],
        }
        for offset, order in enumerate(orders)
    ]
    done = running.run(pa.Table.from_pylist(rows, schema=RECORDS), 0)
    found = [json.loads(row["value"]) for row in done.output.to_pylist()]
    return [(row["id"], row["risk"]) for row in found]
