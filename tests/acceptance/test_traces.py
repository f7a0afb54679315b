"""Traces go on from records to rows, spans and lines of the log, on Spark and Kafka."""
# pyright: basic

import json

import pytest

from kaflow_engine.cli.live_view.logs import log_messages
from kaflow_engine.connectors.kafka.admin import create_topic
from kaflow_engine.connectors.kafka.client import open_producer
from kaflow_engine.connectors.kafka.read import read_all
from kaflow_engine.model.config import Config
from kaflow_engine.plan.planner.project import load_checked
from kaflow_engine.runtime.planning.prepare import prepare
from kaflow_engine.telemetry.outlet import open_outlet
from tests.engine.telemetry.receiver import receive_grpc

pytestmark = [pytest.mark.spark, pytest.mark.kafka, pytest.mark.services]

JOINED = """
name: {unique}_joined
query: |
  SELECT e.id, u.name FROM "{unique}_events" e LEFT JOIN "{unique}_users" u ON e.user = u._key
output: {{topic: {unique}_out, key: id, trace_context: true}}
state: {{dimensions: ["{unique}_users"]}}
emission: {{type: smart, require: [name]}}
topics:
  {unique}_events: {{columns: {{id: BIGINT, user: VARCHAR}}}}
  {unique}_users: {{columns: {{name: VARCHAR}}}}
"""
COUNTED = """
name: {unique}_counted
query: SELECT user, count(*) AS n FROM "{unique}_events" GROUP BY user
output: {{topic: {unique}_counts}}
topics: {{{unique}_events: {{columns: {{id: BIGINT, user: VARCHAR}}}}}}
"""
STATE = "tracestate", b"vendor=1"


def traceparent(number):
    return f"00-{number:032x}-{number:016x}-01"


def headers_of(number):
    """Each third record names no trace, and each fourth one none that is valid."""
    if number % 3 == 0:
        return [("x", b"y")]
    if number % 4 == 0:
        return [("traceparent", b"00-0-0-01"), STATE]
    return [("traceparent", traceparent(number).encode()), STATE, ("x", b"y")]


def passed(number):
    return {name: value for name, value in headers_of(number) if name != "x"}


def write(kafka, topic, records):
    producer = open_producer(kafka, **{"enable.idempotence": True}).api
    for key, value, headers in records:
        producer.produce(topic, json.dumps(value), key, headers=headers)
    assert producer.flush(30) == 0


@pytest.fixture
def run(broker, spark, tmp_path, unique, capsys):
    """Return what runs both pipelines over all that is there, and gives the lines of the log."""
    from kaflow_engine.runtime.application import run_pipelines

    files = [tmp_path / "joined.yaml", tmp_path / "counted.yaml"]
    for file, text in zip(files, (JOINED, COUNTED), strict=True):
        file.write_text(text.format(unique=unique))

    def running(**otlp):
        config = Config.model_validate(
            {
                "kafka": {"brokers": broker.bootstrap},
                "state": {"rocksdb": {"path": str(tmp_path / "state")}},
                "http": {"port": 0},
                "logging": {"format": "json", "level": "debug"},
                "otlp": otlp,
                "max_records": 5,
            }
        )
        project = load_checked(files, config, {})
        planned = prepare(project.pipelines, config)
        capsys.readouterr()
        with log_messages(config.logging), open_outlet(config, [p.plan.name for p in planned]) as o:
            plans = [each.plan for each in planned]
            run_pipelines(plans, config, until_caught_up=True, spark=spark, on_progress=o.take)
        lines = capsys.readouterr().err.splitlines()
        return [json.loads(line) for line in lines if line.startswith("{")]

    return running


def test_a_trace_goes_on(broker, run, unique, monkeypatch):
    monkeypatch.delenv("OTEL_EXPORTER_OTLP_ENDPOINT", raising=False)
    kafka = broker.settings
    for topic, partitions in (("events", 2), ("users", 1)):
        create_topic(kafka, f"{unique}_{topic}", partitions)
    own = [("traceparent", traceparent(999).encode())]
    write(kafka, f"{unique}_users", [("u", {"name": "Ann"}, own)])
    events = [(str(n), {"id": n, "user": "u"}, headers_of(n)) for n in range(1, 31)]
    write(kafka, f"{unique}_events", events[:20])
    with receive_grpc() as (address, received):
        lines = run(endpoint=address)
    spans = {span.span_id.hex(): span for span in received.spans if span.name == "batch"}
    valid = [n for n in range(1, 21) if n % 3 and n % 4]
    for name in ("joined", "counted"):
        linked = [
            int(link.span_id.hex(), 16)
            for span in spans.values()
            if about(span)["kaflow.pipeline"] == f"{unique}_{name}"
            for link in span.links
        ]
        assert sorted(linked) == valid
    of_batches = [line for line in lines if line.get("batch") is not None]
    assert {line["span_id"] for line in of_batches} == set(spans)
    for line in of_batches:
        span = spans[line["span_id"]]
        assert line["trace_id"] == span.trace_id.hex()
        assert about(span)["kaflow.pipeline"] == line["pipeline"]
        assert about(span)["kaflow.batch"] == line["batch"]
    others = [line for line in lines if line.get("batch") is None]
    assert others
    assert not any({"trace_id", "span_id"} & set(line) for line in others)

    write(kafka, f"{unique}_events", events[20:])
    lines = run()  # the same states go on where nothing is sent
    assert any(line.get("batch") is not None for line in lines)
    assert not any({"trace_id", "span_id"} & set(line) for line in lines)
    rows = read_all(kafka, f"{unique}_out").to_pylist()
    assert {int(row["key"]): as_dict(row["headers"]) for row in rows} == {
        number: passed(number) for number in range(1, 31)
    }
    assert len(rows) == 30
    counts = read_all(kafka, f"{unique}_counts").to_pylist()
    assert json.loads(counts[-1]["value"])["n"] == 30
    assert not any(row["headers"] for row in counts)


def about(span):
    return {a.key: a.value.string_value or a.value.int_value for a in span.attributes}


def as_dict(headers):
    return {each["key"]: each["value"] for each in headers or ()}
