"""KS26 and KS27 on Kafka: where the rows of a key go, and what becomes of a broken record."""

import json
from collections import defaultdict

import pytest

from kaflow_engine.cli.live_view.board import account
from kaflow_engine.connectors.kafka.client import KafkaSettings, open_producer
from kaflow_engine.connectors.kafka.read import read_all
from kaflow_engine.model.specs import PipelineSpec
from kaflow_engine.runtime.planning.prepare import prepare
from tests.acceptance.kafka_cases import config_for, new_topic

pytestmark = [pytest.mark.spark, pytest.mark.kafka]

START = 1_767_225_600_000
ROWS, KEYS, PARTITIONS = 1000, 10, 6
BROKEN = 57
SPECS = [
    {
        "name": "ks26",
        "query": "SELECT e.id, e.n, p.tier FROM ks26_in e LEFT JOIN ks26_tiers p ON e.t = p.t",
        "output": {"topic": "ks26_out", "format": "json", "key": "id"},
        "state": {"dimensions": ["ks26_tiers"]},
        "partitions": 4,
    },
    {
        "name": "ks27",
        "query": "SELECT id, n FROM ks27_in",
        "output": {"topic": "ks27_out", "format": "json", "key": "id"},
    },
]


@pytest.fixture(scope="module")
def summary(spark, broker, tmp_path_factory):
    from kaflow_engine.runtime.application import run_pipelines  # it imports Spark

    kafka = KafkaSettings.of([broker.bootstrap])
    for topic, partitions in (("ks26_in", PARTITIONS), ("ks26_tiers", 1), ("ks27_in", 2)):
        new_topic(kafka, topic, partitions)
    producer = open_producer(kafka, **{"enable.idempotence": True}).api  # keeps the order
    for t in range(3):
        producer.produce("ks26_tiers", json.dumps({"t": t, "tier": f"tier {t}"}).encode())
    for n in range(ROWS):
        # the join key is another than the output key, so rows part and must meet again
        value = {"id": f"k{n % KEYS}", "n": n, "t": n % 3}
        key = value["id"].encode()
        producer.produce("ks26_in", json.dumps(value).encode(), key, timestamp=START + n)
    for n in range(100):
        data = json.dumps({"id": f"k{n}", "n": n}).encode()
        producer.produce(
            "ks27_in",
            b"\xff{broken" if n == BROKEN else data,
            f"k{n}".encode() + b"\0",
            partition=n % 2,
            timestamp=START + n,
            headers=[("trace", b"\x00\xfe"), ("trace", b"again"), ("none", None)],
        )
    assert producer.flush(30) == 0
    config = config_for(broker, tmp_path_factory.mktemp("state"))
    config = config.model_copy(update={"max_records": 400})
    plans = [
        planned.plan for planned in prepare([PipelineSpec.model_validate(s) for s in SPECS], config)
    ]
    return run_pipelines(plans, config, until_caught_up=True, spark=spark)


@pytest.fixture
def kafka(broker):
    return KafkaSettings.of([broker.bootstrap])


def test_ks26_each_key_is_on_one_partition_and_in_order(summary, kafka):
    assert summary.pipelines["ks26"].batches > 3
    places: dict[str, set[int]] = defaultdict(set)
    numbers: dict[str, list[int]] = defaultdict(list)
    for record in read_all(kafka, "ks26_out").to_pylist():
        row = json.loads(record["value"])
        assert record["key"] == row["id"].encode()
        assert record["timestamp"] == START + row["n"]
        assert row["tier"] == f"tier {row['n'] % 3}"
        places[row["id"]].add(record["partition"])
        numbers[row["id"]].append(row["n"])
    assert numbers == {f"k{k}": list(range(k, ROWS, KEYS)) for k in range(KEYS)}
    assert all(len(found) == 1 for found in places.values()), places
    assert set.union(*places.values()) <= set(range(PARTITIONS))
    assert len(set.union(*places.values())) > 1


def test_ks26_keys_are_where_other_clients_put_them(summary, kafka):
    # a topic of as many partitions, and the partitioner of Java clients
    placed = open_producer(kafka, partitioner="murmur2_random").api
    found = {}
    for key in (f"k{k}".encode() for k in range(KEYS)):
        placed.produce(
            "ks26_in", b"{}", key, on_delivery=lambda e, m: found.update({m.key(): m.partition()})
        )
    assert placed.flush(30) == 0
    ours = {r["key"]: r["partition"] for r in read_all(kafka, "ks26_out").to_pylist()}
    assert ours == found


def test_ks27_the_other_records_go_on(summary, kafka):
    rows = [json.loads(value) for value in read_all(kafka, "ks27_out")["value"].to_pylist()]
    assert sorted(row["n"] for row in rows) == [n for n in range(100) if n != BROKEN]
    counters = summary.pipelines["ks27"].counters
    assert (counters["read"], counters["emitted"], counters["dead_letter"]) == (100, 99, 1)


def test_ks27_the_dead_letter_says_everything(summary, kafka):
    (letter,) = read_all(kafka, "ks27.dead_letters").to_pylist()
    assert letter["key"] == f"k{BROKEN}".encode() + b"\0"
    assert letter["value"] == b"\xff{broken"
    assert letter["timestamp"] == START + BROKEN
    headers = [(header["key"], header["value"]) for header in letter["headers"]]
    assert headers[:3] == [("trace", b"\x00\xfe"), ("trace", b"again"), ("none", None)]
    about = {name: value.decode() for name, value in headers[3:]}
    message = about.pop("kaflow.message")
    error = about.pop("kaflow.error")
    assert about == {
        "kaflow.pipeline": "ks27",
        "kaflow.topic": "ks27_in",
        "kaflow.partition": "1",
        "kaflow.offset": str(BROKEN // 2),
        "kaflow.timestamp": str(START + BROKEN),
        "kaflow.phase": "decode",
        "kaflow.attempt": "1",
    }
    assert message
    assert error.isidentifier()


def test_every_driving_record_is_in_one_class(summary):
    for pipeline in summary.pipelines.values():
        assert account(pipeline.counters)[2] == 0, pipeline
