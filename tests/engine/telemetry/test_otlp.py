"""Traces and metrics, as a receiver of OpenTelemetry's protocol gets them."""
# pyright: basic

import json
import logging
from dataclasses import replace

import pytest

from kaflow_engine.cli.live_view.logs import log_messages
from kaflow_engine.model.config import Config, LoggingConfig
from kaflow_engine.telemetry.log_context import logging_of
from kaflow_engine.telemetry.metrics.table import METRICS
from kaflow_engine.telemetry.outlet import open_outlet
from kaflow_engine.telemetry.progress import StageSpan
from kaflow_engine.telemetry.traces import MOST_LINKS
from tests.engine.telemetry.examples import FULL
from tests.engine.telemetry.receiver import receive_grpc, receive_http

pytestmark = pytest.mark.slow

END = 1_767_225_660_000
BATCH = replace(
    FULL,
    batch_end=END,
    stages=(
        StageSpan(name="map", start=END - 200, end=END - 150, rows=120, tasks=2),
        StageSpan(name="join profiles", start=END - 150, end=END - 20, rows=118, tasks=2),
    ),
)


def config(**otlp):
    return Config.model_validate({"http": {"port": 0}, "otlp": otlp})


def attributes(span):
    kinds = ("string_value", "int_value", "double_value")
    return {a.key: next(getattr(a.value, k) for k in kinds if a.value.HasField(k)) for a in span}


@pytest.mark.parametrize(
    ("receive", "protocol"), [(receive_http, "http"), (receive_grpc, "grpc")], ids=["http", "grpc"]
)
def test_a_batch_is_a_span_with_its_stages_inside(receive, protocol):
    headers = {"x-tenant": "blue"}
    with receive() as (address, received):
        sending = config(endpoint=address, protocol=protocol, headers=headers)
        with open_outlet(sending, ["p"]) as outlet:
            for progress in (FULL, BATCH, replace(BATCH, state="degraded")):
                outlet.take(progress)
    spans = {span.name: span for span in received.spans}
    assert sorted(spans) == ["batch", "join profiles", "map"]
    assert len(received.spans) == 3
    batch, join = spans["batch"], spans["join profiles"]
    assert join.parent_span_id == batch.span_id
    assert batch.end_time_unix_nano == END * 10**6
    assert batch.start_time_unix_nano == (END - 250) * 10**6
    about = attributes(batch.attributes)
    assert about["kaflow.pipeline"] == "p"
    assert (about["kaflow.batch"], about["kaflow.records"], about["kaflow.lag"]) == (7, 120, 30)
    assert attributes(join.attributes)["kaflow.rows"] == 118
    assert {headers["x-tenant"] for headers in received.headers} == {"blue"}
    assert set(received.metrics) == {m.name for m in METRICS if m.kind != "histogram"}
    (hits,) = received.metrics["kaflow_join_hits_total"].sum.data_points
    assert hits.as_int == 150
    assert attributes(hits.attributes) == {"pipeline": "p", "topic": "profiles"}


def test_the_variables_of_opentelemetry_do_as_well(monkeypatch):
    with receive_http() as (address, received):
        monkeypatch.setenv("OTEL_EXPORTER_OTLP_ENDPOINT", address)
        with open_outlet(config(protocol="http"), ["p"]) as outlet:
            outlet.take(BATCH)
    assert len(received.spans) == 3


def test_lines_of_a_batch_name_its_span(capsys):
    lines = logging.getLogger("kaflow.runtime")
    with receive_http() as (address, received):
        sending = config(endpoint=address, protocol="http")
        with log_messages(LoggingConfig(format="json")):
            with open_outlet(sending, ["p"]) as outlet, logging_of("p"):
                lines.warning("before")
                for run, number in ((1, 7), (1, 8), (2, 8)):
                    with logging_of("p", run, number):
                        lines.warning("within")
                    outlet.take(replace(BATCH, run=run, batch=number))
            with logging_of("p", 1, 7):
                lines.warning("nothing is sent")
    first, *within, last = [json.loads(line) for line in capsys.readouterr().err.splitlines()]
    assert not {"trace_id", "span_id"} & {*first, *last}
    batches = {span.trace_id.hex(): span.span_id.hex() for span in spans_of(received, "batch")}
    assert len(batches) == 2  # a batch that another run has committed is over
    assert {each["trace_id"]: each["span_id"] for each in within[:2]} == batches
    assert within[2]["trace_id"] not in batches
    for span in spans_of(received, "map"):
        assert span.parent_span_id.hex() == batches[span.trace_id.hex()]
        assert span.span_id.hex() not in batches.values()


def test_a_batch_is_linked_to_what_its_records_name():
    named = [f"00-{n:032x}-{n:016x}-01" for n in range(1, MOST_LINKS + 1)]
    with receive_http() as (address, received):
        with open_outlet(config(endpoint=address, protocol="http"), ["p"]) as outlet:
            outlet.take(replace(BATCH, links=tuple(named)))
    (batch,) = spans_of(received, "batch")
    assert [f"00-{e.trace_id.hex()}-{e.span_id.hex()}-01" for e in batch.links] == named
    assert all(not span.links for span in spans_of(received, "map"))


def spans_of(received, name):
    return [span for span in received.spans if span.name == name]


@pytest.mark.parametrize(
    ("receive", "protocol"), [(receive_http, "http"), (receive_grpc, "grpc")], ids=["http", "grpc"]
)
def test_no_pipeline_waits_for_a_receiver(receive, protocol):
    """It answers after all batches, so that one that waited for it would wait for ever."""
    with receive() as (address, received):
        received.may_answer.clear()
        with open_outlet(config(endpoint=address, protocol=protocol), ["p"]) as outlet:
            for number in range(200):
                outlet.take(replace(BATCH, batch=number + 1))
            assert received.asked.acquire()  # some of these 200 are being sent
            for number in range(200, 1200):  # more than is kept to be sent
                outlet.take(replace(BATCH, batch=number + 1))
            received.may_answer.set()
    assert 200 < len(received.spans) <= 3 * 1200


@pytest.mark.parametrize("protocol", ["http", "grpc"])
def test_a_receiver_that_is_away_is_a_warning(protocol, caplog):
    with open_outlet(config(endpoint="http://127.0.0.1:9", protocol=protocol), ["p"]) as outlet:
        outlet.take(BATCH)
    assert "export" in caplog.text


def test_without_an_endpoint_nothing_is_sent(monkeypatch):
    monkeypatch.delenv("OTEL_EXPORTER_OTLP_ENDPOINT", raising=False)
    with open_outlet(config(), ["p"]) as outlet:
        outlet.take(BATCH)
        assert outlet.address


def test_what_cannot_be_sent_at_all_stops_nothing(monkeypatch, caplog):
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_ENDPOINT", "http://[no host")
    with open_outlet(config(protocol="http"), ["p"]) as outlet:
        outlet.take(BATCH)
