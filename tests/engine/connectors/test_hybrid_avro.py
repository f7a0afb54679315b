"""Avro behind phases: records of a topic as rows of JSON, from a real registry and broker."""

import json
from dataclasses import asdict
from functools import partial
from typing import Any

import pyarrow as pa
import pytest

from kaflow_engine.connectors.hybrid.avro_values import as_json
from kaflow_engine.connectors.hybrid.kind import HybridKind
from kaflow_engine.connectors.hybrid.reads import TopicRead
from kaflow_engine.connectors.kafka.admin import create_topic
from kaflow_engine.connectors.kafka.client import open_producer
from kaflow_engine.errors import SourceUnfit
from kaflow_engine.flow.origins.hybrid import HandoverParams, HybridParams
from kaflow_engine.flow.records import RECORDS
from kaflow_engine.formats.avro.encode import AvroEncoder
from kaflow_engine.formats.json.format import JsonFormat
from kaflow_engine.formats.schema_registry import Registry, UnknownSchema
from kaflow_engine.model.columns import Column
from tests.engine.connectors.database_here import PostgresHere

SCHEMA = json.dumps(
    {
        "type": "record",
        "name": "Order",
        "fields": [
            {"name": "id", "type": "long"},
            {"name": "note", "type": ["null", "string"], "default": None},
            {"name": "at", "type": {"type": "long", "logicalType": "timestamp-micros"}},
            {
                "name": "price",
                "type": {"type": "bytes", "logicalType": "decimal", "precision": 20, "scale": 2},
            },
            {"name": "more", "type": "string"},
        ],
    }
)
COLUMNS = (
    Column("id", "BIGINT"),
    Column("note", "VARCHAR"),
    Column("at", "TIMESTAMP"),
    Column("price", "DECIMAL(20,2)"),
    Column("absent", "VARCHAR"),
)
SQL = (
    "SELECT 9007199254740993::BIGINT AS id, NULL::VARCHAR AS note, TIMESTAMP '2026-01-01 10:00:00' "
    "AS at, 12.30::DECIMAL(20, 2) AS price, 'x' AS more UNION ALL "
    "SELECT 2, 'é', TIMESTAMP '2026-01-02', -0.01, 'y'"
)
WANTED = [
    {
        "id": 9007199254740993,
        "note": None,
        "at": "2026-01-01T10:00:00Z",
        "price": 12.30,
        "absent": None,
    },
    {"id": 2, "note": "é", "at": "2026-01-02T00:00:00Z", "price": -0.01, "absent": None},
]


def records(schema_id: int) -> list[bytes]:
    """Return two records as their bytes."""
    from kaflow_engine.duck.queries import query

    found = AvroEncoder(SCHEMA, schema_id).encode(query(SQL)).values
    assert None not in found
    return [value for value in found if value is not None]


def of_values(values: list[bytes | None]) -> pa.Table:
    rows: dict[str, Any] = {field.name: [None] * len(values) for field in RECORDS}
    return pa.table({**rows, "value": values}, schema=RECORDS)


def test_values_are_json_and_what_is_no_avro_keeps_its_bytes() -> None:
    def schema_by_id(number: int) -> str:
        if number != 7:
            raise UnknownSchema(number)
        return SCHEMA

    first, second = records(7)
    unknown, cut, text = records(8)[0], first[:9], b'{"id": 1}'
    found = as_json(of_values([first, None, unknown, cut, text, second]), COLUMNS, schema_by_id)
    assert found.schema == RECORDS
    one, none, *bad, two = found.column("value").to_pylist()
    assert [json.loads(one), json.loads(two)] == WANTED
    assert none is None
    assert bad == [unknown, cut, text]


def test_a_start_without_a_registry_is_refused() -> None:
    params = HybridParams(phases=(), topic="t", handover=None, avro=COLUMNS)
    with pytest.raises(SourceUnfit) as caught:
        HybridKind().open(params, _Place({"phases": "{}", "kafka": "{}"}))  # type: ignore[arg-type]
    assert str(caught.value) == (
        "topic 't' behind phases is Avro, and there is no schema registry\n"
        "  hint: set kafka.schemaRegistry in the configuration"
    )


@pytest.mark.kafka
@pytest.mark.services
def test_columns_are_those_of_the_registry(
    broker: Any, registry: Any, postgres: Any, unique: str
) -> None:
    create_topic(broker.settings, unique, 1)
    here = PostgresHere(postgres)
    here.run(f"CREATE TABLE {unique} (id bigint PRIMARY KEY, note text)")
    params = HybridParams(
        phases=(here.params(unique),),
        topic=unique,
        handover=HandoverParams(columns=None, offsets=None, time=None, start_at="earliest"),
    )
    connection = {
        "phases": json.dumps({"0": {"url": postgres.url}}),
        "kafka": json.dumps(asdict(broker.settings)),
        "registry": registry.url,
    }
    sample = partial(HybridKind().sample, params, JsonFormat(), connection)
    assert sample() is None
    fields = [{"name": "id", "type": "long"}, {"name": "note", "type": "string"}]
    known = Registry(url=registry.url)
    record = {"type": "record", "name": "Order", "fields": fields}
    known.register(f"{unique}-value", json.dumps(record), "AVRO")
    assert sample() == (Column("id", "BIGINT"), Column("note", "VARCHAR"))
    record["fields"] = [*fields, {"name": "price", "type": ["null", "double"], "default": None}]
    known.register(f"{unique}-value", json.dumps(record), "AVRO")
    with pytest.raises(SourceUnfit, match=f"table '{unique}', .* has no column 'price'"):
        sample()


class _Place:
    def __init__(self, connection: dict[str, str]) -> None:
        self.connection = connection


@pytest.mark.kafka
@pytest.mark.services
def test_a_topic_of_a_broker_is_read(broker: Any, registry: Any, unique: str) -> None:
    number = Registry(url=registry.url).register(f"{unique}-value", SCHEMA, "AVRO")
    create_topic(broker.settings, unique, 1)
    producer = open_producer(broker.settings).api
    for value in (*records(number), None):
        producer.produce(unique, value, b"k")
    assert producer.flush(30) == 0
    read = TopicRead(
        source="s",
        kafka=broker.settings,
        topic=unique,
        partition=0,
        shown=1,
        start=0,
        end=3,
        avro=COLUMNS,
        registry=registry.url,
    )
    rows = pa.Table.from_batches([*read()]).to_pylist()
    assert [row["value"] and json.loads(row["value"]) for row in rows] == [*WANTED, None]
    assert [(row["topic"], row["partition"], row["offset"], row["key"]) for row in rows] == [
        ("s", 1, offset, b"k") for offset in range(3)
    ]
