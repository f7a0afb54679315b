"""Records of five megabytes, through Spark's reader and our writer."""
# pyright: basic

import json
import random

import pytest

from kaflow_engine.connectors.kafka.admin import create_topic
from kaflow_engine.connectors.kafka.client import KafkaSettings, open_producer
from kaflow_engine.connectors.kafka.read import read_all
from kaflow_engine.errors import SinkError
from kaflow_engine.model.specs import PipelineSpec
from kaflow_engine.runtime.planning.prepare import prepare
from tests.acceptance.kafka_cases import config_for

pytestmark = [pytest.mark.spark, pytest.mark.kafka]

LARGE = {"max.message.bytes": str(8 * 2**20)}


def test_five_megabytes_go_through_where_the_topics_take_them(spark, broker, unique, tmp_path):
    from kaflow_engine.runtime.application import run_pipelines  # it imports Spark

    kafka = KafkaSettings.of([broker.bootstrap])
    create_topic(kafka, f"{unique}.in", 1, LARGE)
    spec = PipelineSpec.model_validate(
        {
            "name": unique,
            "query": f'SELECT e.n, e.text FROM "{unique}.in" e',
            "output": {"topic": f"{unique}.out"},
            "topics": {f"{unique}.in": {"columns": {"n": "BIGINT", "text": "VARCHAR"}}},
        }
    )
    text = random.Random(1).randbytes(5 * 2**19).hex()  # lz4 makes it hardly smaller
    producer = open_producer(kafka, **{"message.max.bytes": 16 * 2**20}).api
    for n in range(3):
        value = {"n": n, "text": text if n == 1 else "short"}
        producer.produce(f"{unique}.in", json.dumps(value).encode())
    assert producer.flush(30) == 0
    config = config_for(broker, tmp_path)
    create_topic(kafka, f"{unique}.out", 1)  # as brokers create it: it takes one megabyte
    (planned,) = prepare([spec], config)
    with pytest.raises(SinkError) as caught:
        run_pipelines([planned.plan], config, until_caught_up=True, spark=spark)
    size = len(json.dumps({"n": 1, "text": text}, separators=(",", ":")))
    assert caught.value.message == (
        f"a record is larger than the topic takes (writing {size:,} bytes to topic '{unique}.out')"
    )
    assert "raise 'max.message.bytes' of the topic" in str(caught.value)
    assert len(read_all(kafka, f"{unique}.out")) == 0
    widen(kafka, f"{unique}.out")
    run_pipelines([planned.plan], config, until_caught_up=True, spark=spark)
    rows = [json.loads(v) for v in read_all(kafka, f"{unique}.out")["value"].to_pylist()]
    assert [row["n"] for row in rows] == [0, 1, 2]
    assert rows[1]["text"] == text


def test_a_backlog_of_large_records_is_read_in_small_batches(spark, broker, unique, tmp_path):
    from kaflow_engine.runtime.application import run_pipelines  # it imports Spark

    kafka = KafkaSettings.of([broker.bootstrap])
    create_topic(kafka, f"{unique}.in", 2)
    spec = PipelineSpec.model_validate(
        {
            "name": unique,
            "query": f'SELECT e.n, e.text FROM "{unique}.in" e',
            "output": {"topic": f"{unique}.out"},
            "topics": {f"{unique}.in": {"columns": {"n": "BIGINT", "text": "VARCHAR"}}},
        }
    )
    producer = open_producer(kafka).api
    for n in range(60):
        value = {"n": n, "text": "x" * 50_000}
        producer.produce(f"{unique}.in", json.dumps(value).encode(), partition=n % 2)
    assert producer.flush(30) == 0
    config = config_for(broker, tmp_path).model_copy(update={"max_batch_bytes": 2**20})
    (planned,) = prepare([spec], config)
    summary = run_pipelines([planned.plan], config, until_caught_up=True, spark=spark)
    rows = [json.loads(v) for v in read_all(kafka, f"{unique}.out")["value"].to_pylist()]
    assert sorted(row["n"] for row in rows) == list(range(60))
    assert summary.pipelines[unique].batches == 3


def widen(kafka, topic):
    """Do what the error says."""
    from confluent_kafka.admin import AlterConfigOpType, ConfigEntry, ConfigResource

    from kaflow_engine.connectors.kafka.client import open_admin

    entries = [
        ConfigEntry(name, value, incremental_operation=AlterConfigOpType.SET)
        for name, value in LARGE.items()
    ]
    resource = ConfigResource(ConfigResource.Type.TOPIC, topic, incremental_configs=entries)
    admin = open_admin(kafka).api
    for answer in admin.incremental_alter_configs([resource]).values():
        answer.result(timeout=30)
