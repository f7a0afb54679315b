"""CN13: Protobuf and JSON Schema through the registry, from Kafka to Kafka."""

import pytest
from confluent_kafka.schema_registry import SchemaRegistryClient
from confluent_kafka.schema_registry.json_schema import JSONDeserializer
from confluent_kafka.serialization import MessageField, SerializationContext

from kaflow_engine.connectors.kafka.admin import create_topic
from kaflow_engine.connectors.kafka.client import KafkaSettings
from kaflow_engine.errors import SinkError
from kaflow_engine.formats.protobuf.read import class_of
from kaflow_engine.formats.schema_registry import Registry
from kaflow_engine.model.pipelines.loader import load_pipeline
from kaflow_engine.runtime.planning.prepare import prepare
from kaflow_engine.testing.cases.cases import CaseResult, run_case
from kaflow_engine.testing.cases.executor import LocalExecutor
from kaflow_engine.testing.cases.report import report_lines
from tests.acceptance.kafka_cases import AROUND, cases_of, config_for, run_cases

CASES = cases_of("formats_registered.yaml")
NAMES = [case.name for case in CASES]


@pytest.fixture(scope="module")
def ran(spark, broker, registry, tmp_path_factory):
    return run_cases(spark, CASES, config_for(broker, tmp_path_factory.mktemp("state"), registry))


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_the_local_executor_gives_the_same_rows(case):
    result = run_case(case, LocalExecutor(), around=AROUND)
    assert result.passed, "\n".join(report_lines(result))


@pytest.mark.spark
@pytest.mark.kafka
@pytest.mark.services
@pytest.mark.parametrize("name", NAMES)
def test_rows_and_dead_letters_are_right(ran, name):
    result = CaseResult(case=ran[name].case, differences=tuple(ran[name].differences))
    assert result.passed, "\n".join(report_lines(result))


@pytest.mark.spark
@pytest.mark.kafka
@pytest.mark.services
@pytest.mark.parametrize("name", NAMES)
def test_dead_letters_hold_the_bytes_as_they_were(ran, name):
    given = {record.offset: record.value for record in ran[name].case.given}
    for letter in ran[name].letters.to_pylist():
        about = {header["key"]: header["value"] for header in letter["headers"]}
        if about["kaflow.phase"] == b"decode":
            before = given[int(about["kaflow.offset"])]
            assert letter["value"] == (before.encode() if isinstance(before, str) else before)


@pytest.mark.spark
@pytest.mark.kafka
@pytest.mark.services
def test_other_libraries_read_what_was_written(ran, registry):
    latest = Registry(url=registry.url).latest
    values = values_of(ran["CN13 JSON in, JSON Schema out"])
    context = SerializationContext("cn13_json_schema_out", MessageField.VALUE)
    schema = latest("cn13_json_schema_out-value").schema
    with SchemaRegistryClient({"url": registry.url}) as client:
        found = JSONDeserializer(schema, schema_registry_client=client)(values["a"], context)
    assert found == {
        "id": "a",
        "n": 12,
        "price": -1.1,
        "at": "2026-01-01T01:02:03.5Z",
        "tags": ["x"],
        "nested": {"x": 12},
    }
    values = values_of(ran["CN13 JSON in, Protobuf out"])
    # Confluent's own deserializer asks for serialized schemas, which this registry does not give
    order = class_of(latest("cn13_protobuf_out-value").schema, (0,))
    assert {value[5] for value in values.values()} == {0}
    found, empty = (order.FromString(values[key][6:]) for key in "ab")
    assert (found.id, found.n, found.price, list(found.tags)) == ("a", 2**53 + 1, "-1.10", ["x"])
    assert (found.at.seconds, found.at.nanos) == (1767229323, 500_000_000)
    assert not empty.HasField("n")
    assert empty.HasField("nested")
    assert not empty.nested.HasField("x")


def values_of(ran):
    return {row["key"].decode(): row["value"] for row in ran.rows.to_pylist()}


THEIRS = [
    ("json_schema", "JSON", '{"type": "object", "properties": {"id": {"type": "integer"}}}'),
    ("protobuf", "PROTOBUF", 'syntax = "proto3"; message Value { optional int64 id = 1; }'),
]


@pytest.mark.kafka
@pytest.mark.services
@pytest.mark.parametrize(("form", "kind", "theirs"), THEIRS)
def test_an_incompatible_subject_stops_the_start(
    tmp_path, broker, registry, unique, form, kind, theirs
):
    create_topic(KafkaSettings.of([broker.bootstrap]), f"{unique}_in", 1)
    Registry(url=registry.url).register(f"{unique}_out-value", theirs, kind)
    file = tmp_path / "p.yaml"
    file.write_text(
        f"name: {unique}\n"
        f"query: SELECT id FROM {unique}_in\n"
        f"output: {{topic: {unique}_out, format: {form}}}\n"
        f"topics: {{{unique}_in: {{columns: {{id: VARCHAR}}}}}}\n"
    )
    with pytest.raises(SinkError) as raised:
        prepare([load_pipeline(file, {})], config_for(broker, tmp_path, registry))
    refusal = f"{file}:3: the schema registry refuses the schema of '{unique}_out-value'"
    assert str(raised.value).startswith(refusal)
    assert raised.value.exit_code == 12
