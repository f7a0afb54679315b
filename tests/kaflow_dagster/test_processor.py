"""A processor from the command line, in a Dagster that runs: created, started, shown, scaled,
stopped, deleted.
"""
# pyright: basic

import json
import os

import pytest
from click.testing import CliRunner

from kaflow_engine.cli.main import kaflow
from kaflow_engine.connectors.kafka.admin import create_topic
from kaflow_engine.connectors.kafka.client import open_producer
from tests.kaflow_dagster.live import Live
from tests.kaflow_dagster.live_stream import PATIENCE_S

pytestmark = [pytest.mark.spark, pytest.mark.kafka, pytest.mark.services]

SQL = "INSERT INTO {name}-out\nSELECT STREAM id, n\nFROM {name}\nWHERE n > 0;\n"


def test_a_processor_from_its_creation_to_its_end(broker, unique, tmp_path, monkeypatch):
    create_topic(broker.settings, unique, 1)
    producer = open_producer(broker.settings).api
    for n in range(3):
        producer.produce(unique, json.dumps({"id": f"i{n}", "n": n}).encode())
    assert producer.flush(30) == 0
    source = tmp_path / f"{unique}.processor.sql"
    source.write_text(SQL.format(name=unique))
    about = f"topics: {{{unique}: {{columns: {{id: VARCHAR, n: INTEGER}}}}}}\n"
    source.with_suffix(".yaml").write_text(about)
    project = Live(tmp_path / "shop", broker.bootstrap)
    monkeypatch.chdir(project.folder)
    monkeypatch.setenv("KAFKA_BROKERS", broker.bootstrap)

    def run(*arguments, code=0):
        done = CliRunner().invoke(kaflow, ["processor", *arguments], prog_name="kaflow")
        assert done.exit_code == code, done.output
        return done.output

    def shown(command="show", *names):
        return json.loads(run(command, *names, "--json"))

    assert run("create", str(source), "--runners", "1").endswith(
        f"next: kaflow processor start {unique}\n"
    )
    with project as live:
        monkeypatch.setenv("DAGSTER_URL", live.instance.address)
        (listed,) = shown("list")
        assert (listed["name"], listed["state"], listed["lag"]) == (unique, "stopped", None)
        assert f"did you mean '{unique}'" in run("start", unique[:-1], code=10)
        run("start", unique)
        live.until(lambda: shown("show", unique)["batch"], PATIENCE_S, "a report")
        found = shown("show", unique)
        assert (found["state"], found["lag"], found["runners"]) == ("running", 0, 1)
        assert f"{unique}-out" in found["plan"]
        assert found["log"].startswith(f"{live.instance.address}/runs/")
        assert "a new generation" in run("scale", unique, "--runners", "2", code=14)
        assert "stop it" not in run("delete", unique, "--yes", code=10)
        assert "finishes its batch and ends" in run("stop", unique)
        live.until(lambda: shown("list")[0]["state"] == "stopped", PATIENCE_S, "the end of its run")
        run("scale", unique, "--runners", "2")
        live.until(lambda: shown("list")[0]["runners"] == 2, PATIENCE_S, "the other plan")
        said = run("delete", unique, "--yes")
        assert f"kaflow state drop {unique}" in said
        assert f"--delete --topic {unique}-out" in said
        live.until(lambda: shown("list") == [], PATIENCE_S, "its end")
    assert not [name for name in os.listdir("pipelines") if name.startswith(unique)]
