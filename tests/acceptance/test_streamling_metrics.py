"""The query that Streamling's documents show, asked of a real Prometheus and summed over OTLP."""
# pyright: basic

import json
from concurrent.futures import ThreadPoolExecutor
from threading import Event

import pytest

from kaflow_engine.connectors.kafka.client import open_producer
from kaflow_engine.model.config import Config
from kaflow_engine.plan.planner.project import load_checked
from kaflow_engine.runtime.planning.prepare import prepare
from kaflow_engine.telemetry.outlet import open_outlet
from tests.acceptance.kafka_cases import new_topic
from tests.engine.telemetry.receiver import receive_grpc
from tests.prometheus import scraping

pytestmark = [pytest.mark.spark, pytest.mark.kafka, pytest.mark.services]

FILE = """
sources:
  raw_events:
    type: kafka
    topic: app.events
    telemetry:
      labels:
        tier: critical
        dataset: app.events
        team: platform
    primary_key: id
    data_format: json
    schema: {id: BIGINT, amount: DOUBLE}
transforms:
  large: {type: sql, primary_key: id, sql: SELECT * FROM raw_events WHERE amount >= 100}
sinks:
  seen: {type: blackhole, from: large}
"""
QUERY = 'streamling_output_rows_total{dataset="app.events",tier="critical"}'
SCRAPE = """
global: {{scrape_interval: 1s}}
scrape_configs:
  - job_name: streamling
    static_configs: [{{targets: ["{target}"]}}]
"""
LOADS = (500, 300)
"""Records that are written while it runs; the next ones when Prometheus has seen them."""


def write(kafka, first, count):
    producer = open_producer(kafka, **{"enable.idempotence": True}).api
    for number in range(first, first + count):
        value = json.dumps({"id": number, "amount": number / 2})
        producer.produce("app.events", value, str(number))
    assert producer.flush(30) == 0


def points(received, name):
    """Return all points of a metric, of each time that it was sent."""
    found = [metric for metric in received.all_metrics if metric.name == name]
    return [point for metric in found for point in metric.gauge.data_points]


def labels(point):
    return {each.key: each.value.string_value for each in point.attributes}


def test_prometheus_and_otlp_have_the_rows_that_were_written(broker, spark, tmp_path):
    from kaflow_engine.runtime.application import run_pipelines

    new_topic(broker.settings, "app.events", 2)
    tmp_path.joinpath("shop.yaml").write_text(FILE)
    stop, written, seen = Event(), 0, []
    with receive_grpc() as (collector, received):
        config = Config.model_validate(
            {
                "kafka": {"brokers": broker.bootstrap},
                "state": {"rocksdb": {"path": str(tmp_path / "state")}},
                "http": {"port": 0},
                "otlp": {"endpoint": collector, "interval": "1s"},
                "max_records": 200,
            }
        )
        project = load_checked([tmp_path / "shop.yaml"], config, {})
        (planned,) = prepare(project.pipelines, config)
        files = {each.name: each.file_metrics for each in project.pipelines}
        with open_outlet(config, files, files=files) as outlet, ThreadPoolExecutor(1) as threads:
            target = outlet.address.removeprefix("http://")
            tmp_path.joinpath("prometheus.yaml").write_text(SCRAPE.format(target=target))
            running = threads.submit(
                run_pipelines,
                [planned.plan],
                config,
                on_progress=outlet.take,
                stop=stop,
                spark=spark,
            )
            try:
                with scraping(tmp_path) as prometheus:
                    for count in LOADS:
                        write(broker.settings, written, count)
                        written += count
                        seen += prometheus.until(QUERY, at_least(written))
                    large = prometheus.until('streamling_output_rows_total{id="large"}')
            finally:
                stop.set()
            running.result()
    assert [float(sample["value"][1]) for sample in seen] == [500, 800]
    assert seen[-1]["metric"]["id"] == "raw_events"
    assert seen[-1]["metric"]["topic"] == "app.events"
    assert value_of(large) == 600
    deltas = [p for p in points(received, "streamling_output_rows_delta") if "tier" in labels(p)]
    assert {labels(point)["dataset"] for point in deltas} == {"app.events"}
    assert len([point for point in deltas if point.as_double or point.as_int]) > 1
    assert sum(point.as_double or point.as_int for point in deltas) == written


def at_least(rows):
    return lambda found: value_of(found) >= rows


def value_of(found):
    (sample,) = found
    return float(sample["value"][1])
