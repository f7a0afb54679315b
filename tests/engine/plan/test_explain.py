"""An explanation says everything, with and without known columns, and its drawing fits."""

import json
from pathlib import Path

import pytest

from kaflow_engine.errors import Location, ModelError
from kaflow_engine.model.columns import Column
from kaflow_engine.model.config import Config
from kaflow_engine.model.pipelines.loader import load_pipeline, pipeline_from_mapping
from kaflow_engine.plan.explain.draw import draw
from kaflow_engine.plan.explain.explain import explain, unknown_topics
from kaflow_engine.plan.explain.explanation import Explanation

PIPELINES = Path(__file__).parents[2] / "fixtures" / "pipelines"
BASE = {
    "name": "p",
    "description": "What people did, with who they are. " * 5,
    "query": """
        SELECT e.id, p.name, s.title
        FROM events e
        LEFT JOIN people p ON e.id = p.id
        INNER JOIN shops s ON e.shop = s.shop
        WHERE e.n > 1 AND s.title <> 'x'
    """,
    "output": {"topic": "out", "format": "avro", "key": "id"},
    "emission": {"type": "smart", "require": ["name"], "on_expiry": "emit"},
    "state": {"dimensions": ["people"], "events": {"overrides": {"events": "2h"}}},
    "dead_letters": {"max_count": 5},
    "partitions": 3,
    "topics": {
        "people": {"lookup": "as_of", "history": "7d", "key": "nick"},
        "events": {"event_time": "at", "lateness": "5s", "on_error": "skip"},
    },
}
COLUMNS = {
    "events": (
        Column("id", "VARCHAR"),
        Column("n", "BIGINT"),
        Column("shop", "VARCHAR"),
        Column("at", "TIMESTAMP"),
    ),
    "people": (Column("id", "VARCHAR"), Column("nick", "VARCHAR"), Column("name", "VARCHAR")),
    "shops": (Column("shop", "VARCHAR"), Column("title", "VARCHAR")),
}


def explained(columns: bool = True, **changes: object) -> Explanation:
    spec = pipeline_from_mapping({**BASE, **changes}, Location("p.yaml", 1), {})
    return explain(spec, Config(), COLUMNS if columns else None)


def test_all_parts() -> None:
    found = explained()
    events, people, shops = found.topics
    assert (events.roles, events.ttl, events.ttl_from) == (
        ("driving",),
        7_200_000,
        "state.events.overrides.events",
    )
    assert (events.event_time, events.lateness, events.on_error) == ("at", 5000, "skip")
    assert (people.roles, people.ttl, people.lookup, people.keep) == (
        ("dimension",),
        None,
        "as_of",
        604_800_000,
    )
    assert "counted and ignored: the Kafka key is 'nick'" in str(people.tombstones)
    assert (shops.roles, shops.ttl_from) == (("event side",), "state.ttl of the configuration")
    assert found.chains[0].filters == ("e.n > 1",)
    assert found.chains[0].where == ("s.title <> 'x'",)
    assert [step.key for step in found.chains[0].steps] == [("e.id",), ("e.shop",)]
    assert [step.inner for step in found.chains[0].steps] == [(), ("s",)]
    assert found.chains[0].steps[0].require == ("p.name",)
    assert found.chains[0].require == ("name", "id")
    assert found.chains[0].wait == 7_200_000
    assert [column.name for column in found.outputs[0].columns or ()] == ["id", "name", "title"]
    assert [(part.column, part.sources) for part in found.outputs[0].lineage] == [
        ("id", (("events", "id"),)),
        ("name", (("people", "name"),)),
        ("title", (("shops", "title"),)),
    ]
    assert json.loads(str(found.outputs[0].avro_schema))["name"] == "Value"
    assert json.loads(json.dumps(found.data()))["topics"][0]["name"] == "events"


def test_what_is_known_without_columns() -> None:
    found = explained(columns=False)
    assert [topic.columns for topic in found.topics] == [None, None, None]
    assert [step.key for step in found.chains[0].steps] == [("e.id",), ("e.shop",)]
    assert found.chains[0].filters == ("e.n > 1",)
    assert found.outputs[0].columns is None
    assert "are not known yet" in found.notices[0]


def test_a_query_that_cannot_be_read_without_columns() -> None:
    found = explained(columns=False, query="SELECT * FROM events e JOIN shops s USING (shop)",
                      emission={}, state={}, topics={}, output={"topic": "out"})  # fmt: skip
    assert found.chains[0].driving is None
    assert [topic.roles for topic in found.topics] == [("driving",), ("event side",)]
    assert "the query reads columns that are not known yet" in "\n".join(draw(found))


def test_a_wrong_pipeline_is_not_explained() -> None:
    for columns in (True, False):
        with pytest.raises(ModelError, match="unknown output column 'nmae'"):
            explained(columns, emission={"type": "smart", "require": ["nmae"]})


def test_unknown_topics() -> None:
    spec = load_pipeline(PIPELINES / "user_enrichment.yaml", {})
    assert unknown_topics(spec) == ("user_events", "user_profiles")


@pytest.mark.parametrize("file", sorted(PIPELINES.glob("*.yaml")), ids=lambda file: file.stem)
def test_a_drawing_fits(file: Path) -> None:
    lines = draw(explain(load_pipeline(file, {}), Config()))
    assert max(map(len, lines)) <= 100


DRAWN = (
    "│ kept       2h (state.events.overrides.events)",
    "│ watermark  the greatest time minus 5s;",
    "│ errors     a bad record is skipped and counted",
    "│ lookup   the version of the event's time; versions are kept 1w",
    "│ WHERE   e.n > 1 (first: what does not pass never waits)",
    "│ INNER JOIN  shops s (event)",
    "│ waits       for a match of s; at most 2h",
    "│ emission  smart: when name, id are not NULL; at most 2h later",
    "│ expiry    an incomplete row is emitted as it is",
    "│ delivery  exactly once: consumers read with isolation.level=read_committed;",
    "│ errors    dead letters go to p.dead_letters; stops beyond 5 of them",
    "│ state     3 partitions; fixed when the state is created",
)


def test_a_drawing_says_it_all() -> None:
    lines = draw(explained(state={**BASE["state"]}))
    assert max(map(len, lines)) <= 100
    for words in DRAWN:
        assert any(line.startswith(words) for line in lines), (words, "\n".join(lines))


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"emission": {"type": "final"}}, "final: once for each record, when the watermark is 2h"),
        ({"emission": {}}, "immediate: as soon as a record is read"),
        ({"delivery": "at_least_once"}, "at least once: after a failure"),
        ({"ordered": False}, "in any order"),
        ({"output": {"topic": "o", "key": "id", "key_format": "bytes"}}, "id, as bytes"),
        (
            {"topics": {"events": {"key_format": "json", "key_type": "BIGINT"}}},
            "keys       json: BIGINT",
        ),
    ],
)
def test_what_else_may_be_said(changes: dict[str, object], words: str) -> None:
    query = "SELECT e.id, p.name FROM events e LEFT JOIN people p ON e.id = p.id"
    assert words in "\n".join(draw(explained(query=query, **changes)))


@pytest.mark.parametrize(
    ("column", "sources"),
    [
        ("upper(p.name) || e.id AS x", (("events", "id"), ("people", "name"))),
        ("coalesce(p.name, p.name) AS x", (("people", "name"),)),
        ("count(*) OVER () AS x", None),
        ("1 AS x", ()),
        ("p.id IS NULL AS x", (("people", "id"),)),
    ],
)
def test_lineage_of_an_expression(column: str, sources: tuple[tuple[str, str], ...] | None) -> None:
    query = f"SELECT e.id, {column} FROM events e LEFT JOIN people p ON e.id = p.id"
    changes = {"query": query, "emission": {"type": "immediate"}}
    if sources is None:
        with pytest.raises(ModelError):
            explained(**changes)
    else:
        assert explained(**changes).outputs[0].lineage[1].sources == sources


@pytest.mark.parametrize(
    "said",
    [
        {"type": "sqlite", "path": "u.db"},
        {"type": "duckdb", "path": "u.db"},
        {"type": "postgres"},
        {"type": "mysql"},
    ],
    ids=["sqlite", "duckdb", "postgres", "mysql"],
)
def test_lineage_of_a_table_that_is_looked_up(said: dict[str, str]) -> None:
    users = {"table_name": "users", "attached": True, "columns": {"id": "VARCHAR", "tier": "INT"}}
    query = "SELECT e.id, 2 * u.tier AS x FROM events e LEFT JOIN users u ON e.id = u.id"
    sources = {"users": {**said, **users}}
    emission = {"type": "immediate"}
    found = explained(query=query, emission=emission, topics={}, state={}, sources=sources)
    assert found.outputs[0].lineage[1].sources == (("events", "id"), ("users", "tier"))
    assert f"LEFT JOIN {said['type']} table users of" in "\n".join(draw(found))


def test_what_happens_to_lost_records_and_new_schemas() -> None:
    policies = {"on_data_loss": "continue", "on_schema_change": "fail"}
    topics = {**BASE["topics"], "shops": {"format": "avro", **policies}}
    found = explained(topics=topics)
    assert (found.topics[2].on_data_loss, found.topics[2].on_schema_change) == ("continue", "fail")
    text = "\n".join(draw(found))
    assert text.count("counted and passed over") == 1
    assert text.count("another schema of the registry stops the pipeline") == 1


CHAIN_KEYS = {
    *(
        "driving",
        "filters",
        "steps",
        "where",
        "require",
        "wait",
        "ledger",
        "emission",
        "latest",
        "on_expiry",
    )
}


def test_the_json_of_one_chain_has_its_parts_beside_the_others() -> None:
    found = explained().data()
    assert CHAIN_KEYS <= set(found)
    assert "chains" not in found
    (output,) = found["outputs"]
    assert {"unnests", "where", "lineage"} <= set(output)
    assert "branches" not in output


def test_chains_of_their_own() -> None:
    outputs = [
        {"query": "SELECT e.id FROM events e WHERE e.n > 1", "topic": "x"},
        {"query": "SELECT s.title FROM shops s WHERE s.title <> 'y'", "topic": "y"},
    ]
    found = explained(query=None, output=None, outputs=outputs, emission={}, state={}, topics={})
    assert [(chain.topics, chain.filters) for chain in found.chains] == [
        (("events",), ("e.n > 1",)),
        (("shops",), ("s.title <> 'y'",)),
    ]
    assert [found.topics_of(output) for output in found.outputs] == [("events",), ("shops",)]
    data = found.data()
    assert [set(chain) for chain in data["chains"]] == [CHAIN_KEYS | {"name", "topics"}] * 2
    assert CHAIN_KEYS & set(data) == {"emission"}, "of the pipeline, that of its first chain"
