"""Record columns in plans: which are made, of which type, and what `AS _key` does."""

# pyright: basic

import pytest

from kaflow_engine.errors import Location, ModelError
from kaflow_engine.flow.graph import columns_of
from kaflow_engine.model.columns import Column
from kaflow_engine.model.config import Config
from kaflow_engine.model.pipelines.loader import pipeline_from_mapping
from kaflow_engine.model.project import load_project
from kaflow_engine.plan.evolution.chain import document_of, flow_of_chain
from kaflow_engine.plan.evolution.diff_text import differences
from kaflow_engine.plan.explain.draw import draw
from kaflow_engine.plan.explain.explain import explain
from kaflow_engine.plan.planner.pipeline_plan import build_plan, check_pipeline
from kaflow_engine.runtime.planning.plan_codec import plan_of, plan_text

SCHEMAS = {
    "orders": (Column("id", "VARCHAR"), Column("user_id", "VARCHAR")),
    "users": (Column("name", "VARCHAR"), Column("_Offset", "VARCHAR")),
}


def spec(query, output=None, **more):
    data = {"name": "p", "query": query, "output": output or {"topic": "out"}, **more}
    return pipeline_from_mapping(data, Location("p.yaml", 1), {})


def plan(query, output=None, **more):
    return build_plan(spec(query, output, **more), Config(warehouse="/w"), SCHEMAS).plan


def made(flow):
    return {topic.name: [c.name for c in topic.record_columns] for topic in flow.sources}


def columns(flow):
    return [(column.name, column.type) for column in columns_of(flow, flow.sinks[0])]


def test_each_has_its_type():
    names = "_key, _time, _topic, _partition, _offset, _timestamp, _headers"
    assert columns(plan(f"SELECT {names} FROM orders")) == [
        ("_key", "VARCHAR"),
        ("_time", "TIMESTAMP"),
        ("_topic", "VARCHAR"),
        ("_partition", "INTEGER"),
        ("_offset", "BIGINT"),
        ("_timestamp", "TIMESTAMP"),
        ("_headers", "MAP(VARCHAR, BLOB)"),
    ]


def test_types_are_known_when_a_file_is_checked():
    orders = {"columns": {"id": "VARCHAR"}}
    with pytest.raises(ModelError, match="column 'x' is BIGINT, not VARCHAR"):
        check_pipeline(
            spec(
                "SELECT _offset AS x FROM orders",
                columns={"x": {"data_type": "VARCHAR"}},
                topics={"orders": orders},
            )
        )


@pytest.mark.parametrize(
    ("query", "expected"),
    [
        ("SELECT id FROM orders", {"orders": ["$key"]}),
        ("SELECT * FROM orders", {"orders": ["$key"]}),
        ("SELECT id FROM orders WHERE _OFFSET > 1", {"orders": ["_offset", "$key"]}),
        ("SELECT o._headers['a'] AS a FROM orders o", {"orders": ["_headers", "$key"]}),
        (
            "SELECT o.id, _offset AS x FROM orders o JOIN users u ON u._key = o.user_id",
            {"orders": ["$key"], "users": ["_key"]},
        ),
        (
            "SELECT a._offset AS x FROM orders a JOIN orders b ON a._key = b._key "
            "WHERE b._partition = 1",
            {"orders": ["_key", "_partition", "_offset", "$key"]},
        ),
        (
            "WITH x AS (SELECT id FROM orders) SELECT _time AS t FROM (SELECT id FROM x) y",
            {"orders": ["_time", "$key"]},
        ),
    ],
)
def test_only_those_that_are_used_are_made(query, expected):
    assert made(plan(query, state={"dimensions": []})) == expected


def test_an_own_column_wins_however_it_is_spelled():
    flow = plan("SELECT _offset AS x, * FROM users")
    assert made(flow) == {"users": ["$key"]}
    assert columns(flow) == [("x", "VARCHAR"), ("name", "VARCHAR"), ("_Offset", "VARCHAR")]


def test_lineage_shows_them_as_columns_of_the_topic():
    query = "SELECT o.id, u._timestamp AS t FROM orders o JOIN users u ON o._key = u._key"
    for schemas in (SCHEMAS, {}):
        found = explain(spec(query), Config(), schemas)
        assert found.outputs[0].lineage[1].sources == (("users", "_timestamp"),)
        assert found.chains[0].steps[0].sides[0].on == ("o._key = u._key",)


@pytest.mark.parametrize(
    ("query", "output", "key", "value"),
    [
        ("SELECT id AS _key, user_id FROM orders", None, "_key", ["user_id"]),
        ("SELECT id AS _KEY, user_id FROM orders", None, "_KEY", ["user_id"]),
        ("SELECT id AS _KEY FROM orders", {"topic": "o", "key": "_key"}, "_KEY", ["_KEY"]),
        ("SELECT _Key AS k FROM (SELECT id AS _KEY FROM orders) x", None, "$key", ["k"]),
        ("SELECT _key AS _key, * FROM orders", None, "_key", ["id", "user_id"]),
        ("SELECT _key, id FROM orders", None, "$key", ["_key", "id"]),
        ("SELECT id AS _key FROM orders", {"topic": "o", "key": "_key"}, "_key", ["_key"]),
        ("SELECT id AS _key FROM orders", {"table": "t"}, None, ["_key"]),
        ("SELECT id FROM orders", {"table": "t"}, None, ["id"]),
        ("SELECT id FROM orders", {"type": "console"}, None, ["id"]),
        ("SELECT DISTINCT id FROM orders", None, None, ["id"]),
        ("SELECT * FROM (SELECT id AS _key, user_id FROM orders) x", None, "$key", ["user_id"]),
        ("SELECT _key AS k FROM (SELECT id AS _key FROM orders) x", None, "$key", ["k"]),
    ],
)
def test_what_sets_the_key(query, output, key, value):
    flow = plan(query, output)
    assert flow.sinks[0].key == key
    assert [name for name, _ in columns(flow)] == value


def test_a_key_that_is_set_is_required_and_shown():
    query = "SELECT o.id, u.name AS _key FROM orders o LEFT JOIN users u ON o.user_id = u._key"
    file = spec(query, emission={"type": "smart", "require": ["_key"]})
    found = explain(file, Config(), SCHEMAS)
    assert (found.outputs[0].key, found.chains[0].require) == ("_key", ("_key",))
    assert found.chains[0].steps[0].require == ("u.name",)
    assert [column.name for column in found.outputs[0].columns or ()] == ["id"]


def test_a_plan_with_them_comes_back_from_both_its_forms():
    topics = {"orders": {"on_null": "row"}}
    flow = plan("SELECT id AS _key, _headers AS h FROM orders", topics=topics)
    assert plan_of(plan_text(flow)) == flow
    document = document_of(flow)
    assert flow_of_chain(document)["sinks"][0]["key_in_value"] is False
    plain = document_of(plan("SELECT id AS _key, _headers AS h FROM orders"))
    assert differences(plain, document) == (
        "topic 'orders': treatment of null values is row, was skip",
    )


def test_a_topic_may_have_no_other_columns():
    file = spec("SELECT _key AS k FROM orders", topics={"orders": {"columns": {}}})
    assert check_pipeline(file) == ()
    found = explain(file, Config())
    assert (found.topics[0].columns, found.outputs[0].columns) == ((), (Column("k", "VARCHAR"),))
    assert "columns    none" in "\n".join(draw(found))


def test_null_values_as_rows_are_drawn():
    found = explain(spec("SELECT id FROM orders", topics={"orders": {"on_null": "row"}}), Config())
    assert "a record without a value is a row of NULLs" in "\n".join(draw(found))


def test_a_model_sets_headers_and_keeps_keys_as_a_file_does(tmp_path):
    (tmp_path / "models").mkdir()
    text = "SELECT id, _headers AS _headers FROM orders WHERE user_id > ''"
    (tmp_path / "models" / "passed.sql").write_text(text)
    (found,) = load_project([tmp_path], None, {}).pipelines
    flow = build_plan(found, Config(), SCHEMAS).plan
    (sink,) = flow.sinks
    assert (sink.headers, sink.key, columns(flow)) == ("_headers", "$key", [("id", "VARCHAR")])
