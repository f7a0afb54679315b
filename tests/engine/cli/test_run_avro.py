"""Avro out and Avro in, through a registry, between two pipelines of one project."""

import json

import pytest

from kaflow_engine.connectors.kafka.admin import create_topic
from kaflow_engine.connectors.kafka.client import KafkaSettings
from tests.committed import read_committed
from tests.engine.cli.test_run import run, send


@pytest.mark.kafka
@pytest.mark.spark
@pytest.mark.services
def test_one_pipeline_reads_what_another_writes(tmp_path, broker, registry, unique):
    kafka = KafkaSettings.of([broker.bootstrap])
    create_topic(kafka, f"{unique}.in", 2)
    send(kafka, f"{unique}.in", [{"id": n, "price": n / 4} for n in range(20)])
    tmp_path.joinpath("a.yaml").write_text(
        f"name: {unique}-a\n"
        "query: >\n"
        "  SELECT a.id, CAST(a.price AS DECIMAL(10,2)) AS price, to_timestamp(a.id) AS at\n"
        f'  FROM "{unique}.in" a\n'
        f"output: {{topic: {unique}.mid, format: avro, key: id}}\n"
    )
    tmp_path.joinpath("b.yaml").write_text(
        f"name: {unique}-b\n"
        f'query: SELECT m.id, m.price * 2 AS price, m.at FROM "{unique}.mid" m\n'
        f"output: {{topic: {unique}.out, key: id}}\n"
        f'topics: {{"{unique}.mid": {{format: avro}}}}\n'
    )
    settings = ("--until-caught-up", "--json", "--set", f"kafka.schemaRegistry={registry.url}")
    for _ in range(2):  # the second pipeline ends where its topic ended when it was started
        done = run(tmp_path, "a.yaml", "b.yaml", *settings, broker=broker)
        assert done.returncode == 0, done.stderr
    counts = [pipeline["emitted"] for pipeline in json.loads(done.stdout)["pipelines"]]
    assert counts == [20, 20]
    rows = [
        json.loads(value) for value in read_committed(kafka, f"{unique}.out")["value"].to_pylist()
    ]
    assert sorted((row["id"], row["price"]) for row in rows) == [(n, n / 2) for n in range(20)]
    assert {row["at"] for row in rows if row["id"] == 3} == {"1970-01-01T00:00:03Z"}
