"""KS20 to KS23: formats and the registry, from Kafka to Kafka."""

import datetime as dt
import io
import json
import urllib.error
import urllib.request
from decimal import Decimal
from uuid import UUID

import fastavro
import pytest

from kaflow_engine.connectors.kafka.admin import create_topic
from kaflow_engine.connectors.kafka.client import KafkaSettings
from kaflow_engine.errors import ModelError, SinkError
from kaflow_engine.formats.schema_registry import Registry
from kaflow_engine.model.config import Config
from kaflow_engine.model.pipelines.loader import load_pipeline
from kaflow_engine.plan.planner.pipeline_plan import build_plan, declared_columns
from kaflow_engine.runtime.planning.prepare import prepare
from kaflow_engine.testing.cases.cases import CaseResult, run_case
from kaflow_engine.testing.cases.executor import LocalExecutor
from kaflow_engine.testing.cases.report import report_lines
from tests.acceptance.kafka_cases import AROUND, cases_of, config_for, run_cases

CASES = cases_of("formats.yaml")
PARAMS = [pytest.param(case, id=case.name) for case in CASES]
NAMES = [case.name for case in CASES]


@pytest.fixture(scope="module")
def ran(spark, broker, registry, tmp_path_factory):
    return run_cases(spark, CASES, config_for(broker, tmp_path_factory.mktemp("state"), registry))


@pytest.mark.parametrize("case", PARAMS)
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


PLAIN = {
    "id": "string",
    "bo": "boolean",
    "i": "int",
    "n": "long",
    "f": "float",
    "d": "double",
    "u": "string",
    "b": "bytes",
    "da": {"type": "int", "logicalType": "date"},
    "ti": {"type": "long", "logicalType": "time-micros"},
    "ts": {"type": "long", "logicalType": "timestamp-micros"},
    "de": {"type": "bytes", "logicalType": "decimal", "precision": 10, "scale": 2},
}
"""Column -> its Avro type in SEMANTICS section 7, beside null."""


@pytest.mark.spark
@pytest.mark.kafka
@pytest.mark.services
def test_ks21_type_by_type(ran, registry):
    latest = Registry(url=registry.url).latest("ks21_out-value")
    assert latest is not None
    schema = json.loads(latest.schema)
    assert (schema["type"], schema["name"]) == ("record", "Value")
    fields = {field["name"]: field for field in schema["fields"]}
    assert list(fields) == [*PLAIN, "l", "st", "m"]
    for name, field in fields.items():
        absent, present = field["type"]
        assert absent == "null", name
        assert field["default"] is None, name
        if name in PLAIN:
            assert present == PLAIN[name], name
    assert fields["l"]["type"][1] == {"type": "array", "items": ["null", "long"]}
    assert fields["st"]["type"][1]["type"] == "record"
    assert fields["m"]["type"][1] == {"type": "map", "values": ["null", "long"]}
    whole, empty = (
        read(value, schema) for value in ran["KS21 every type"].rows["value"].to_pylist()
    )
    if whole["id"] == "none":
        whole, empty = empty, whole
    assert whole == {
        "id": "all",
        "bo": True,
        "i": -(2**31),
        "n": 2**63 - 1,
        "f": 1.5,
        "d": -0.1,
        "u": str(UUID("2f1e8a30-6c1d-4c0e-8d51-0123456789ab")),
        "b": b"\x00\xff",
        "da": dt.date(1969, 12, 31),
        "ti": dt.time(23, 59, 59, 999999),
        "ts": dt.datetime(1969, 12, 31, 23, 59, 59, 999999, tzinfo=dt.UTC),
        "de": Decimal("-12345678.90"),
        "l": [1, None, -3],
        "st": {"x": 5, "y": ["é", None]},
        "m": {"k": 7, "n": None},
    }
    assert empty == {**dict.fromkeys(fields), "id": "none"}


def read(value: bytes, schema: object) -> object:
    """Decode a framed value with another library than the engine's own reader."""
    parsed = fastavro.parse_schema(schema)
    return fastavro.schemaless_reader(io.BytesIO(value[5:]), parsed, None)


@pytest.mark.spark
@pytest.mark.kafka
@pytest.mark.services
def test_ks23_the_subject_holds_the_schema_as_given(ran, registry):
    latest = Registry(url=registry.url).latest("ks23_out-value")
    assert latest is not None
    given = ran["KS23 the schema is registered as given"].planned.spec.writes[0].output.schema_
    assert json.loads(latest.schema) == {
        "type": "record",
        "name": "Order",
        "fields": list(given.fields),
    }


def test_ks23_a_column_that_the_schema_lacks_is_a_load_error(tmp_path):
    file = tmp_path / "p.yaml"
    file.write_text(
        "name: p\n"
        "query: SELECT id, amuont FROM t\n"
        "output:\n"
        "  topic: o\n"
        "  format: avro\n"
        "  schema:\n"
        "    fields:\n"
        "      - {name: id, type: string}\n"
        "      - {name: amount, type: long}\n"
        "topics: {t: {columns: {id: VARCHAR, amuont: BIGINT}}}\n"
    )
    spec = load_pipeline(file, {})
    columns = declared_columns(spec, "t")
    assert columns is not None
    with pytest.raises(ModelError) as raised:
        build_plan(spec, Config(), {"t": columns})
    assert str(raised.value) == (
        f"{file}:7: the query column 'amuont' is not in output.schema.fields\n"
        "  hint: did you mean 'amount'?\n"
        f"{file}:9: the field 'amount' of output.schema is not a column of the query\n"
        "  hint: select it AS amount, or give the field a default"
    )


@pytest.mark.kafka
@pytest.mark.services
def test_ks22_an_incompatible_subject_stops_the_start(tmp_path, broker, registry, unique):
    create_topic(KafkaSettings.of([broker.bootstrap]), f"{unique}_in", 1)
    file = tmp_path / "p.yaml"
    file.write_text(
        f"name: {unique}\n"
        f"query: SELECT id FROM {unique}_in\n"
        f"output: {{topic: {unique}_out, format: avro}}\n"
        f"topics: {{{unique}_in: {{columns: {{id: VARCHAR}}}}}}\n"
    )
    spec = load_pipeline(file, {})
    config = config_for(broker, tmp_path, registry)
    other = {"type": "record", "name": "Value", "fields": [{"name": "id", "type": "long"}]}
    ours = {
        "type": "record",
        "name": "Value",
        "fields": [{"name": "id", "type": ["null", "string"], "default": None}],
    }
    subject = f"{unique}_out-value"
    assert ask(registry, subject, other)[0] == 200
    status, answer = ask(registry, subject, ours)
    assert status == 409
    with pytest.raises(SinkError) as raised:
        prepare([spec], config)
    assert answer["message"] in str(raised.value)
    assert f"{file}:3: the schema registry refuses the schema of '{subject}'" in str(raised.value)
    assert raised.value.exit_code == 12


def ask(registry, subject: str, schema: object) -> tuple[int, dict[str, object]]:
    """Register a schema as any client would; return what the registry says."""
    request = urllib.request.Request(
        f"{registry.url}/subjects/{subject}/versions",
        data=json.dumps({"schema": json.dumps(schema)}).encode(),
        headers={"Content-Type": "application/vnd.schemaregistry.v1+json"},
    )
    try:
        with urllib.request.urlopen(request, timeout=10) as answer:
            return answer.status, json.load(answer)
    except urllib.error.HTTPError as refusal:
        with refusal:
            return refusal.code, json.load(refusal)
