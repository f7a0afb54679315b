"""What differs between two plans, in words."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import pytest

from kaflow_engine.errors import Location, StateError
from kaflow_engine.flow.flow import Flow
from kaflow_engine.flow.graph import joins
from kaflow_engine.model.columns import Column
from kaflow_engine.model.config import Config
from kaflow_engine.model.pipelines.loader import pipeline_from_mapping
from kaflow_engine.plan.evolution.chain import document_of
from kaflow_engine.plan.evolution.diff import change, obstacles
from kaflow_engine.plan.evolution.diff_text import differences
from kaflow_engine.plan.evolution.evolution import inherit
from kaflow_engine.plan.planner.pipeline_plan import build_plan

COLUMNS = {
    "a": (Column("id", "VARCHAR"), Column("n", "BIGINT")),
    "b": (Column("id", "VARCHAR"), Column("v", "BIGINT")),
}


def plan_of(query: str, **more: object) -> Flow:
    output = {"topic": "o", "key": "id"}
    mapping = {"name": "p", "query": query, "output": output, **more}
    schemas = {name: columns for name, columns in COLUMNS.items() if f" {name}" in query}
    return build_plan(pipeline_from_mapping(mapping, Location("p"), {}), Config(), schemas).plan


def document(plan: Flow) -> Mapping[str, Any]:
    return document_of(plan)


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


THREE = "SELECT a.id, b.v FROM a LEFT JOIN b ON a.id = b.id LEFT JOIN b c ON a.id = c.id"
SWAPPED = "SELECT a.id, b.v FROM a LEFT JOIN b c ON a.id = c.id LEFT JOIN b ON a.id = b.id"
GOES_ON: list[tuple[str, dict[str, object]]] = [
    ("a longer TTL", {"window": "2h"}),
    ("delivery", {"delivery": "at_least_once"}),
    ("description and owners", {"description": "joined", "owners": ["x@y.z"]}),
    ("dead letters", {"dead_letters": {"topic": "bad", "max_count": 3}}),
    ("bad records and lateness", {"topics": {"b": {"lateness": "5s", "on_error": "fail"}}}),
    ("the last filter", {"query": f"{JOINED} WHERE a.id <> 'x'"}),
    ("a column to keep", {"query": JOINED.replace("a.id,", "a.id, a.n,")}),
    ("the output", {"output": {"topic": "o2", "key": "id"}}),
    ("the partitions", {"partitions": 9}),
    ("an output column", {"query": JOINED.replace("b.v", "b.v, b.v IS NULL AS w")}),
]
REFUSED: list[tuple[str, dict[str, object], str]] = [
    ("a join's kind", {"query": JOINED.replace("LEFT", "INNER")}, "kind is INNER, was LEFT"),
    ("a join's key", {"query": JOINED.replace("a.id = b.id", "a.n = b.v")}, "side 'b': key is"),
    ("a shorter TTL", {"window": "30m"}, "step 1, side 'b': TTL is 30m, was 1h"),
    ("the emission", {"emission": {"type": "final"}}, "emission type is final, was immediate"),
    ("a role", {"state": {"dimensions": ["b"]}}, "role is dimension, was event"),
    ("a topic", {"query": ONE}, "topic 'b' was removed"),
    ("event times", {"topics": {"a": {"event_time": "n"}}}, "topic 'a': event time is"),
]


def changed(**more: object) -> Flow:
    settings: dict[str, object] = {"query": JOINED, "partitions": 2, **more}
    return plan_of(str(settings.pop("query")), **settings)


@pytest.mark.parametrize("more", [row[1] for row in GOES_ON], ids=[row[0] for row in GOES_ON])
def test_a_state_goes_on(more: dict[str, object]) -> None:
    change(changed(), changed(**more))
    assert obstacles(changed(), changed(**more)) == ()


@pytest.mark.parametrize(
    ("more", "words"), [row[1:] for row in REFUSED], ids=[row[0] for row in REFUSED]
)
def test_a_state_does_not_go_on(more: dict[str, object], words: str) -> None:
    with pytest.raises(StateError, match="'p' was made for another plan:\n") as raised:
        change(changed(), changed(**more))
    assert words in raised.value.message
    assert "`id:`" in str(raised.value.hint)


def test_the_order_of_sides_is_that_of_the_state() -> None:
    old, new = changed(query=THREE), changed(query=SWAPPED)
    assert obstacles(old, new) == ()
    assert [side.alias for side in joins(inherit(old, new))[0].sides] == ["b", "c"]
