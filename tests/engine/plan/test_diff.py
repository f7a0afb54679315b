"""What differs between two plans, in words."""

import json
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from kaflow_engine.errors import Location
from kaflow_engine.model.columns import Column
from kaflow_engine.model.config import Config
from kaflow_engine.model.loader import pipeline_from_mapping
from kaflow_engine.operators.params import Plan
from kaflow_engine.plan.build import build_plan
from kaflow_engine.plan.diff import differences
from kaflow_engine.runtime.plans import plan_text

COLUMNS = {
    "a": (Column("id", "VARCHAR"), Column("n", "BIGINT")),
    "b": (Column("id", "VARCHAR"), Column("v", "BIGINT")),
}


def plan_of(query: str, **more: object) -> Plan:
    mapping = {"name": "p", "query": query, "output": {"topic": "o", "key": "id"}, **more}
    schemas = {name: columns for name, columns in COLUMNS.items() if f" {name}" in query}
    return build_plan(pipeline_from_mapping(mapping, Location("p"), {}), Config(), schemas).plan


def document(plan: Plan) -> Mapping[str, Any]:
    return json.loads(plan_text(plan))


ONE = "SELECT a.id, a.n FROM a"
JOINED = "SELECT a.id, b.v FROM a LEFT JOIN b ON a.id = b.id"


def test_equal_plans() -> None:
    assert differences(document(plan_of(JOINED)), document(plan_of(JOINED))) == ()


def test_a_topic_that_is_added() -> None:
    found = differences(document(plan_of(ONE)), document(plan_of(JOINED)))
    assert "topic 'b' was added" in found
    assert "step 1 was added" in found
    assert "step 1, side 'b' was added" in found
    assert "output: column 'n' was removed" in found
    assert "output: column 'v' was added (BIGINT b.v)" in found
    assert "driving side: key is id, was not set" not in found


def test_settings() -> None:
    topics = {"b": {"lateness": "5s", "on_error": "fail"}}
    state = {"events": {"overrides": {"b": "90m"}}}
    new = plan_of(JOINED, topics=topics, state=state, partitions=7, delivery="at_least_once")
    old = replace(plan_of(JOINED), partitions=2)
    found = differences(document(old), document(new))
    assert set(found) == {
        "topic 'b': lateness is 5s, was 0s",
        "topic 'b': treatment of bad records is fail, was dead_letter",
        "step 1, side 'b': TTL is 1h30m, was 1h",
        "state partitions is 7, was 2",
        "delivery is at_least_once, was exactly_once",
    }


def test_a_field_that_only_one_plan_knows() -> None:
    old = dict(document(plan_of(ONE)))
    assert differences(old, {**old, "new_thing": True}) == ("new thing was added (on)",)
    assert differences({**old, "new_thing": None}, old) == ("new thing was removed",)
