"""Pipeline files become specifications."""

import pickle
from datetime import date
from pathlib import Path

import pytest

from kaflow_engine.errors import Location, ModelError
from kaflow_engine.model.files.tree import Entries, Items
from kaflow_engine.model.files.yaml_file import parse_yaml
from kaflow_engine.model.files.yaml_syntax import compose
from kaflow_engine.model.outputs.output_specs import OutputSpec
from kaflow_engine.model.pipelines.loader import load_pipeline, pipeline_from_mapping
from kaflow_engine.model.relations.relation_specs import RelationSpec
from kaflow_engine.model.specs import PipelineSpec, TopicSpec

FIXTURES = Path(__file__).parents[2] / "fixtures" / "pipelines"
HOUR, DAYS = 3_600_000, 30 * 86_400_000
PLACES = {"partition": "p", "offset": "o", "timestamp": "t", "key": "k", "value": "v"}
FULL = """\
# everything that a pipeline can say
name: full
id: full-1
description: |
  Two lines,
  all told.
owners: [ann, "5"]
tags: {team: growth, tier: 1}
window: 1h30m

query: |

  SELECT a.id, 'costs $$5' AS price
  FROM ${TABLE:-orders} a
output:
  topic: ${PREFIX}.out
  format: avro
  key: on
  new_topic: {partitions: 6, replication_factor: 3, config: {retention.ms: 86400000}}
  schema:
    name: Row
    fields:
      - {name: id, type: ["null", long], default: null}
      - {name: n, type: int, default: 0}
  coalesce: batch
  side_outputs: [{type: acme.audit, options: {file: x}}]
emission:
  type: smart
  require:
    - id
    - price
  on_expiry: dead_letter
  coalesce: none
aggregation: {ttl: 7d, grace: 1h, on_late: dead_letter}
state:
  events: {default_ttl: 500ms, overrides: {orders: 2w}}
  dimensions: [users]
topics:
  users:
    columns: {id: BIGINT, on: BOOLEAN}
    format: avro
    event_time: ts
    lateness: 5s
    idle_timeout: 1m
    max_future: 1h
    on_error: fail
    lookup: as_of
    history: {keep: 7d, path: /a, format: delta, partition: p, offset: o, timestamp: t,
              key: k, value: v}
    key: id
    key_format: long
    on_data_loss: continue
    wait_for: true
    on_schema_change: add_nullable
  countries: {table: true, primary_key: [code, "on"], operation: "header:dbz.op", retain: 30d}
delivery: at_least_once
dead_letters: {max_rate: 0.5, max_count: 10}
on_dimension_update: reemit
dimensions_first: no
ordered: false
partitions: 4
columns: {price: {description: In euros.}}
meta: {tier: 1}
group: shop
consumer_group: before
auto_offset_reset: latest
backfill: {slack: 30m, start: 2026-01-31, schedule: 0 6 * * *}
checks: [{unique: id, severity: warn}]
relations:
  today: {query: SELECT 1, description: One., aggregation: {grace: 2h}}
  new: {topic: v, table: true, primary_key: [code, "on"], operation: "header:dbz.op", retain: 30d}
"""

NO_OPTIONS = {"format_options": {}}
SENT = {"coalesce": "batch", "every": None, "late_updates": False, "windows": None}
SMART = {**SENT, "type": "smart", "coalesce": "none"}
NO_PLACE = dict.fromkeys(("cluster", "topic", "operation", "retain"))
NO_TABLE = {"table": False, "primary_key": (), **NO_PLACE}
TABLE = {"table": True, "primary_key": ("code", "on"), "operation": "header:dbz.op", "retain": DAYS}
KEY_AND_TYPES = {"key": "id", "key_format": "long", "key_type": None, "types": {}, **NO_OPTIONS}
WITH_GRACE = {"ttl": None, "grace": 2 * HOUR, "on_late": "drop", "retain": None}
ONE = {"query": "SELECT 1", "description": "One.", "aggregation": WITH_GRACE}
NONE = RelationSpec().model_dump()
UNSAID = dict.fromkeys(("type", "cluster", "key_format", "key_schema", "changes", "operation"))
LETTERS = dict.fromkeys(("type", "connection", "table", "topic", "cluster"))


def load(text: str, variables: dict[str, str] | None = None) -> PipelineSpec:
    root = parse_yaml(text, Location("p.yaml"), variables or {}).sound()
    return pipeline_from_mapping(root, Location("p.yaml", 1))


def test_every_key() -> None:
    spec = load(FULL, {"PREFIX": "dev"})
    assert spec.model_dump(exclude={"within", "row_time", "lookup", "sources"}) == {
        "name": "full",
        "id": "full-1",
        "description": "Two lines,\nall told.\n",
        "outputs": (),
        "columns": {"price": {"description": "In euros.", "data_type": None}},
        "owners": ("ann", "5"),
        "meta": {"tier": "1"},
        **{"group": "shop", "consumer_group": "before", "auto_offset_reset": "latest"},
        "tags": {"team": "growth", "tier": "1"},
        "window": 90 * 60_000,
        "query": "\nSELECT a.id, 'costs $5' AS price\nFROM orders a\n",
        "relations": {"today": NONE | ONE, "new": NONE | TABLE | {"topic": "v"}},
        "output": {
            "topic": "dev.out",
            "format": "avro",
            "key": "on",
            **(UNSAID | NO_OPTIONS | {"trace_context": False}),
            "schema_": {
                "name": "Row",
                "fields": (
                    {"name": "id", "type": ["null", "long"], "default": None},
                    {"name": "n", "type": "int", "default": 0},
                ),
            },
            "new_topic": {
                "partitions": 6,
                "replication_factor": 3,
                "config": {"retention.ms": "86400000"},
            },
            "table": None,
            "partition": "day",
            "interval": 10_000,
            "coalesce": "batch",
            "every": None,
            "side_outputs": ({"type": "acme.audit", "options": {"file": "x"}},),
        },
        "emission": {**SMART, "require": ("id", "price"), "on_expiry": "dead_letter"},
        "aggregation": {
            "ttl": 7 * 24 * HOUR,
            "grace": HOUR,
            "on_late": "dead_letter",
            "retain": None,
        },
        "state": {
            "events": {"default_ttl": 500, "overrides": {"orders": 14 * 24 * HOUR}},
            "dimensions": ("users",),
        },
        "topics": {
            "users": {
                "description": None,
                "columns": {"id": "BIGINT", "on": "BOOLEAN"},
                "format": "avro",
                **{"event_time": "ts", "lateness": 5_000, "idle_timeout": 60_000},
                **{"max_future": HOUR, "on_error": "fail", "lookup": "as_of"},
                "history": {"keep": 7 * 24 * HOUR, "path": "/a", "format": "delta", **PLACES},
                **KEY_AND_TYPES,
                "on_null": "skip",
                "on_data_loss": "continue",
                "on_schema_change": "add_nullable",
                "wait_for": True,
                **NO_TABLE,
            },
            "countries": {**TopicSpec().model_dump(), **TABLE},
        },
        "delivery": "at_least_once",
        "dead_letters": {**LETTERS, "max_rate": 0.5, "max_count": 10},
        "on_dimension_update": "reemit",
        **{"dimensions_first": False, "ordered": False},
        "backfill": {"slack": 1_800_000, "start": date(2026, 1, 31), "schedule": "0 6 * * *"},
        "checks": ({"unique": "id", "severity": "warn"},),
        "partitions": 4,
    }


def test_defaults() -> None:
    spec = load("name: p\nquery: SELECT 1\noutput: {topic: o}\nemission:\nstate: {events: }\n")
    assert spec == PipelineSpec(
        name="p",
        query="SELECT 1",
        output=OutputSpec(topic="o"),
        at=Location("p.yaml", 1),
        places=spec.places,
    )
    assert (spec.id, spec.output.format, spec.output.key) == ("p", "json", None)
    assert (spec.emission.type, spec.emission.require) == ("immediate", ())
    assert spec.dead_letters.topic is None
    assert spec.topic("anything").on_error == "dead_letter"


@pytest.mark.parametrize(
    ("path", "line"),
    [
        ((), 2),
        (("name",), 2),
        (("description",), 4),
        (("query",), 12),
        (("output", "topic"), 16),
        (("output", "schema", "fields", 1, "type"), 24),
        (("output", "absent"), 15),
        (("emission", "require"), 29),
        (("emission", "require", 0), 30),
        (("emission", "require", 1), 31),
        (("emission", "require", 9), 29),
        (("topics", "users", "columns", "on"), 40),
        (("absent", "at", "all"), 2),
    ],
)
def test_place(path: tuple[str | int, ...], line: int) -> None:
    assert load(FULL, {"PREFIX": "dev"}).place(*path) == Location("p.yaml", line)


@pytest.mark.parametrize(
    ("query", "line"),
    [
        ("query: SELECT 1", 1),
        ("query:\n  SELECT 1", 2),
        ("query: >\n  S", 2),
        ("query: |-\n  S", 2),
    ],
)
def test_place_of_the_sql(query: str, line: int) -> None:
    spec = load(f"{query}\nname: p\noutput: {{topic: o}}\n")
    assert spec.place("query").line == line


def test_a_pipeline_inside_another_file() -> None:
    text = "- case: x\n  pipeline: {name: p, query: S,\n    output: {topic: o}}\n"
    root = parse_yaml(text, Location("cases.yaml"), {}).sound()
    assert isinstance(root, Items)
    case = root.items[0]
    assert isinstance(case, Entries)
    node = case.get("pipeline")
    assert isinstance(node, Entries)
    assert pipeline_from_mapping(node, node.at).place("output").line == 3

    composed = compose("name: p\nquery: ${Q}\noutput: {topic: o}\n", Location("cases.yaml"))
    assert composed is not None
    spec = pipeline_from_mapping(composed, Location("cases.yaml"), {"Q": "SELECT 2"})
    assert (spec.query, str(spec.place("query"))) == ("SELECT 2", "cases.yaml:2")

    plain = {"name": "p", "query": "S", "output": {"topic": "o"}, "ordered": False, "partitions": 2}
    spec = pipeline_from_mapping(plain, Location("cases.yaml", 7))
    assert (spec.ordered, spec.partitions, str(spec.place("query"))) == (False, 2, "cases.yaml:7")
    with pytest.raises(ModelError, match=r"cases\.yaml:7: unknown key 'windw'"):
        pipeline_from_mapping({**plain, "windw": 1}, Location("cases.yaml", 7))


def test_reads_the_environment_unless_given_variables(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "p.yaml"
    path.write_text("name: p\nquery: S\noutput: {topic: '${KAFLOW_TEST_TOPIC}'}\n")
    monkeypatch.setenv("KAFLOW_TEST_TOPIC", "from_environment")
    assert load_pipeline(path).output.topic == "from_environment"
    assert load_pipeline(path, {"KAFLOW_TEST_TOPIC": "given"}).output.topic == "given"


@pytest.mark.parametrize("path", sorted(FIXTURES.glob("*.yaml")), ids=lambda path: path.stem)
def test_the_printed_pipelines(path: Path) -> None:
    spec = load_pipeline(path, {})
    assert spec.name == path.stem
    lines = path.read_text().splitlines()
    first = spec.place("query").line
    assert first is not None
    assert lines[first - 1].strip() == spec.query.splitlines()[0].strip()
    assert pickle.loads(pickle.dumps(spec)) == spec


def test_ttls_of_a_printed_pipeline() -> None:
    spec = load_pipeline(FIXTURES / "customer_360_windowed.yaml", {})
    assert spec.window == 24 * HOUR
    assert spec.state.events.default_ttl == HOUR
    assert spec.state.events.overrides == {
        "events": 2 * HOUR,
        "transactions": 24 * HOUR,
        "support": 7 * 24 * HOUR,
    }
    assert spec.state.dimensions == ("profiles",)
    assert spec.emission.require == ("email", "tier")


def test_tags_may_be_a_list() -> None:
    said = "name: p\nquery: S\noutput: {topic: o}\ntags: [a, b]\n"
    assert load(said).tags == {"a": "", "b": ""}
