"""`kaflow check` over the rows that a pipeline has just written to a topic and into files."""
# pyright: basic

import json
import time

import pytest
import yaml
from click.testing import CliRunner

from kaflow_engine.cli.main import kaflow
from kaflow_engine.connectors.kafka.client import open_producer
from kaflow_engine.model.config import Config
from kaflow_engine.model.pipelines.loader import load_pipeline
from kaflow_engine.runtime.planning.prepare import prepare

CHECKS = [{"unique": "id"}, {"not_null": "amount", "severity": "warn"}]
pytestmark = [pytest.mark.spark, pytest.mark.kafka, pytest.mark.services]


@pytest.mark.parametrize("form", ["json", "avro"])
def test_rows_of_a_topic_and_of_files_are_checked(broker, registry, spark, unique, tmp_path, form):
    from kaflow_engine.runtime.application import run_pipelines

    broker.create_topic(f"{unique}.in", 2)
    producer = open_producer(broker.settings).api
    now = time.time_ns() // 1_000_000
    for n in range(20):  # two of them older than what is looked at
        at = now - (3_600_000 if n < 2 else 0)
        value = json.dumps({"id": n, "amount": None if n % 6 == 5 else n}).encode()
        producer.produce(f"{unique}.in", value, str(n), timestamp=at)
    assert producer.flush(30) == 0
    file = tmp_path / "p.yaml"
    file.write_text(
        yaml.safe_dump(
            {
                "name": unique,
                "relations": {"all": {"query": f'SELECT id, amount FROM "{unique}.in"'}},
                "outputs": [
                    {"from": "all", "topic": f"{unique}.out", "format": form, "checks": CHECKS},
                    {"from": "all", "type": "files", "folder": unique, "checks": CHECKS},
                ],
                "topics": {f"{unique}.in": {"columns": {"id": "BIGINT", "amount": "BIGINT"}}},
            }
        )
    )
    kafka = {"brokers": broker.bootstrap, "schemaRegistry": registry.url}
    settings = {
        "kafka": kafka,
        "state": {"rocksdb": {"path": str(tmp_path / "state")}},
        "warehouse": str(tmp_path / "warehouse"),
    }
    (tmp_path / "kaflow.yaml").write_text(yaml.safe_dump(settings))
    config = Config.model_validate(settings)
    (planned,) = prepare([load_pipeline(file, {})], config)
    run_pipelines([planned.plan], config, until_caught_up=True, spark=spark)

    command = ["check", unique, str(file), "--config", str(tmp_path / "kaflow.yaml")]
    done = CliRunner().invoke(kaflow, [*command, "--json", "--docs", str(tmp_path / "docs")])
    assert done.exit_code == 0, done.output
    in_topic, in_files = json.loads(done.stdout)["outputs"]
    assert (in_topic["of"], in_topic["rows"]) == (f"topic '{unique}.out'", 18)
    assert (in_files["of"], in_files["rows"]) == (f"output 'files:{unique}'", 20)
    assert [(c["passed"], c["failed"]) for c in in_topic["checks"]] == [(True, 0), (False, 3)]
    assert [(c["passed"], c["failed"]) for c in in_files["checks"]] == [(True, 0), (False, 3)]
    for found in (in_topic, in_files):
        assert {row["id"] for row in found["checks"][1]["sample"]} == {5, 11, 17}
    pages = [page.read_text() for page in (tmp_path / "docs").iterdir()]
    assert all(any(f"3 of {n} rows failed" in page for page in pages) for n in (18, 20))
    text = CliRunner().invoke(kaflow, [*command, "--last", "2h"])
    assert "20 rows, 1 checks passed, 1 failed" in text.output
