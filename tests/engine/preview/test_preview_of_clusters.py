"""A preview of topics of several clusters: each has the schemas of its own registry."""

import io
import json
from functools import partial

import fastavro
import pyarrow as pa
import pytest

from kaflow_engine.errors import Location
from kaflow_engine.flow.records import RECORDS
from kaflow_engine.formats.schema_registry import Registry, UnknownSchema
from kaflow_engine.model.columns import Column
from kaflow_engine.model.config import Config
from kaflow_engine.model.pipelines.loader import pipeline_from_mapping
from kaflow_engine.plan.planner.pipeline_plan import build_plan
from kaflow_engine.preview.preview import schema_of
from kaflow_engine.testing.local.executor import LocalPipeline

FIELDS = {"http://here.of-clusters:1": ["id", "note"], "http://west.of-clusters:1": ["note", "id"]}
"""By registry: of the schema with the id 7, which both have."""
HERE, WEST = FIELDS


def _schema(registry: str) -> str:
    kinds = {"id": "long", "note": "string"}
    fields = [{"name": field, "type": kinds[field]} for field in FIELDS[registry]]
    return json.dumps({"type": "record", "name": "R", "fields": fields})


def _fetch(registry: Registry, schema_id: int) -> str:
    if schema_id != 7:
        raise UnknownSchema(schema_id)
    return _schema(registry.url)


def _record(topic: str, registry: str, row: object) -> dict[str, object]:
    stream = io.BytesIO()
    fastavro.schemaless_writer(stream, json.loads(_schema(registry)), row)
    value = b"\0\0\0\0\7" + stream.getvalue()
    place = {"topic": topic, "partition": 0, "offset": 0, "timestamp": 0}
    return {**place, "key": None, "value": value, "headers": []}


def test_each_topic_has_the_schemas_of_its_cluster(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Registry, "fetch", _fetch)
    west = {"brokers": ["w:1"], "schemaRegistry": WEST}
    without = {"brokers": ["n:1"]}
    clusters = {"west": west, "without": without}
    config = Config.model_validate({"kafka": {"schemaRegistry": HERE, "clusters": clusters}})
    spec = pipeline_from_mapping(
        {
            "name": "p",
            "topics": {"a": {"format": "avro"}, "b": {"format": "avro", "cluster": "west"}},
            "query": "SELECT id, note FROM a UNION ALL SELECT id, note FROM b",
            "output": {"topic": "o"},
        },
        Location("p.yaml"),
    )
    columns = (Column("id", "BIGINT"), Column("note", "VARCHAR"))
    plan = build_plan(spec, config, {"a": columns, "b": columns}).plan
    running = LocalPipeline(plan, {"a": [0], "b": [0]}, schema_by_id=partial(schema_of, config))
    records = [
        _record("a", HERE, {"id": 1, "note": "here"}),
        _record("b", WEST, {"id": 2, "note": "west"}),
    ]
    done = running.run(pa.Table.from_pylist(records, schema=RECORDS), 1)
    rows = [json.loads(row["value"]) for row in done.output.to_pylist()]
    assert sorted(rows, key=str) == [{"id": 1, "note": "here"}, {"id": 2, "note": "west"}]
    for schema_id, cluster in ((8, "west"), (7, "without")):
        with pytest.raises(UnknownSchema):
            schema_of(config, schema_id, cluster)
