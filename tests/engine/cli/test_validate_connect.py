"""`kaflow validate --connect`: what brokers and registry say against a start, all of it at once."""

import json
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from kaflow_engine.cli.main import kaflow
from kaflow_engine.connectors.kafka.admin import create_topic, describe
from kaflow_engine.connectors.kafka.client import open_producer
from kaflow_engine.formats.schema_registry import Registry
from kaflow_engine.testing.services.broker import Broker
from kaflow_engine.testing.services.registry import SchemaRegistry

pytestmark = [pytest.mark.kafka, pytest.mark.services]

CONFIG = "kafka: {{brokers: ['{brokers}'], schemaRegistry: '{registry}'}}\n"
AVRO = '{"type": "record", "name": "v", "fields": [{"name": "id", "type": "string"}]}'
OTHER = '{"type": "record", "name": "v", "fields": [{"name": "other", "type": "long"}]}'
ANY_JSON = '{"$schema": "http://json-schema.org/draft-07/schema#", "type": "object"}'

TABLE = ", table: true, primary_key: [id]"

ROWS: list[tuple[str, dict[str, Any], str, str]] = [
    # output, what there is of its topic: policy, schema and its language; word; in the message
    ("{topic: OUT, key: id}", {}, "ok", ""),
    ("{topic: OUT, key: id}", {"policy": "delete"}, "ok", ""),
    ("{topic: OUT, key: id}", {"schema": (AVRO, "AVRO")}, "ok", ""),
    (
        "{topic: OUT, key: id}",
        {"policy": "delete", "schema": (AVRO, "AVRO")},
        "error",
        "are registered as Avro, in 'OUT-value', and this output writes JSON",
    ),
    (
        "{topic: OUT, key: id}",
        {"policy": "delete", "schema": (ANY_JSON, "JSON")},
        "notice",
        "are registered as JSON Schema",
    ),
    (
        "{topic: OUT, key: id, format: avro}",
        {"schema": (ANY_JSON, "JSON")},
        "error",
        "are registered as JSON Schema, in 'OUT-value', and this output writes Avro",
    ),
    (
        "{topic: OUT, key: id, format: avro}",
        {"schema": (OTHER, "AVRO")},
        "error",
        "is not compatible with the one that is registered as 'OUT-value'",
    ),
    (
        "{topic: OUT}",
        {"policy": "compact", "distinct": True},
        "error",
        "this output has no key: brokers refuse",
    ),
    ("{topic: OUT}", {"policy": "compact"}, "notice", "only the last record of each key"),
    ("{topic: OUT, key: id}", {"policy": "compact"}, "notice", "only the last record of each key"),
    ("{topic: OUT, key: id}", {"policy": "delete", "table": True}, "notice", "output is a table"),
    ("{topic: OUT, key: id}", {"policy": "compact", "table": True}, "ok", ""),
]


@pytest.fixture
def folder(
    broker: Broker, registry: SchemaRegistry, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Path:
    monkeypatch.chdir(tmp_path)
    Path("kaflow.yaml").write_text(CONFIG.format(brokers=broker.bootstrap, registry=registry.url))
    Path("pipelines").mkdir()
    return Path("pipelines")


def run(*options: str) -> Result:
    return CliRunner().invoke(kaflow, ["validate", "pipelines", "--connect", *options])


def test_what_outputs_and_their_topics_disagree_about(
    broker: Broker, registry: SchemaRegistry, folder: Path, unique: str
) -> None:
    create_topic(broker.settings, f"{unique}.in", 1)
    for number, (output, there, _, _) in enumerate(ROWS):
        topic = f"{unique}.out{number}"
        if "policy" in there:
            create_topic(broker.settings, topic, 1, {"cleanup.policy": there["policy"]})
        if "schema" in there:
            Registry(url=registry.url).register(f"{topic}-value", *there["schema"])
        folder.joinpath(f"p{number}.yaml").write_text(
            f"name: {unique}p{number}\n"
            f'query: SELECT {"DISTINCT " * ("distinct" in there)}id FROM "{unique}.in"\n'
            f"output: {output.replace('OUT', topic)}\n"
            f"topics: {{{unique}.in: {{columns: {{id: VARCHAR}}{TABLE * ('table' in there)}}}}}\n"
        )
    done = run()
    assert done.exit_code == 12, done.output
    found = [line for line in done.stderr.splitlines() if not line.startswith(" ")]
    for number, (_, _, word, said) in enumerate(ROWS):
        lines = [line for line in found if f"p{number}.yaml:3" in line]
        wanted = [said.replace("OUT", f"{unique}.out{number}")] if said else []
        assert [line.partition(":")[0] for line in lines] == [word] * len(wanted), lines
        assert all(text in line for text, line in zip(wanted, lines, strict=True)), lines
    errors = sum(word == "error" for _, _, word, _ in ROWS)
    notices = sum(word == "notice" for _, _, word, _ in ROWS)
    last = f"{len(ROWS)} pipelines, {errors} mistakes, {notices} notices\n"
    assert done.stdout.endswith(last)
    assert not describe(broker.settings, [f"{unique}.out0"])[f"{unique}.out0"].exists


def test_what_is_read_must_be_there_and_have_columns(
    broker: Broker, folder: Path, unique: str
) -> None:
    for name in ("a", "unknown"):
        create_topic(broker.settings, f"{unique}.{name}", 1)
    producer = open_producer(broker.settings).api
    producer.produce(f"{unique}.unknown", json.dumps({"id": "1", "n": 2}).encode())
    assert producer.flush(30) == 0
    config = Path("kaflow.yaml")
    config.write_text(f"{config.read_text()}topics: {{{unique}.a: {{columns: {{id: VARCHAR}}}}}}\n")
    rows = {
        "sound": ("SELECT STREAM id FROM a", None),
        "column": ("SELECT STREAM idd FROM a", (None, "unknown column 'idd'")),
        "gone": ("SELECT STREAM * FROM aa", (2, f"no topic '{unique}.aa'")),
        "all": ("SELECT STREAM * FROM unknown", (2, f"schema of topic '{unique}.unknown'")),
        "field": ("SELECT STREAM n + 1 AS m FROM unknown", (2, "and so is not its field 'n'")),
    }
    for name, (query, _) in rows.items():
        start, _, topic = query.rpartition(" ")
        folder.joinpath(f"{name}.processor.sql").write_text(
            f"INSERT INTO {unique}.{name}\n{start} {unique}.{topic};\n"
        )
    done = run("--json")
    found = json.loads(done.stdout)
    assert found["left"] == []
    assert {p["name"]: p["ok"] for p in found["pipelines"]} == {
        name: said is None for name, (_, said) in rows.items()
    }
    for name, (_, said) in rows.items():
        mistakes = [m for m in found["mistakes"] if m["file"].endswith(f"{name}.processor.sql")]
        assert [m["message"] for m in mistakes] if said else not mistakes
        assert all(said and said[1] in mistake["message"] for mistake in mistakes), mistakes
    assert done.exit_code in (10, 11)


NULLABLE = (
    '{"type": "record", "name": "v", "fields": [{"name": "id", "type": "string"}, '
    '{"name": "n", "type": ["null", "int"]}]}'
)


def test_what_registered_schemas_let_be_null(
    broker: Broker, registry: SchemaRegistry, folder: Path, unique: str
) -> None:
    topic = f"{unique}.a"
    create_topic(broker.settings, topic, 1)
    Registry(url=registry.url).register(f"{topic}-value", NULLABLE, "AVRO")
    for name, strict in (("strict", "on"), ("warned", "warn"), ("lax", "off")):
        sql = (
            f"INSERT INTO {unique}.{name}\nSELECT STREAM id || 'x' AS x, n + 1 AS m FROM {topic};\n"
        )
        about = f"name: {name}\nstrict_nulls: {strict}\ntopics: {{{topic}: {{format: avro}}}}\n"
        folder.joinpath(f"{name}.processor.sql").write_text(sql)
        folder.joinpath(f"{name}.processor.yaml").write_text(about)
    done = run()
    assert done.exit_code == 10, done.output
    found = [line for line in done.stderr.splitlines() if ":2:" in line]
    words = f"'n' can be NULL, which '+' does not take: the field 'n' of '{topic}' is nullable"
    assert sorted(found) == [
        f"error: pipelines/strict.processor.sql:2:31: {words}",
        f"notice: pipelines/warned.processor.sql:2:31: {words}",
    ]
