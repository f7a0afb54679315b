"""Which changes of sources that are no topics a state goes on with, and which it does not."""

from typing import Any

import pytest

from kaflow_engine.errors import Location, StateError
from kaflow_engine.flow.flow import Flow
from kaflow_engine.model.config import Config
from kaflow_engine.model.pipelines.loader import pipeline_from_mapping
from kaflow_engine.plan.evolution.diff import change
from kaflow_engine.plan.evolution.sources import begun_again, moved_sources
from kaflow_engine.plan.planner.pipeline_plan import build_plan, declared_columns
from kaflow_engine.runtime.planning.plan_codec import plan_of, plan_text

COLUMNS = {"columns": {"u": "VARCHAR"}}
TOPIC = {"topics": {"s": COLUMNS}}
VALUES = {"u": {"distribution": "sequence", "prefix": "u"}}


def files(**more: Any) -> dict[str, Any]:
    return {"sources": {"s": {"type": "files", "path": "/in", **COLUMNS, **more}}}


def made(**more: Any) -> dict[str, Any]:
    return {"sources": {"s": {"type": "generator", "values": VALUES, **more}}}


def read(**more: Any) -> dict[str, Any]:
    kind = {"type": "postgres", "table_name": "shop.orders", **COLUMNS}
    return {"sources": {"s": {**kind, **more}}}


def phases(**more: Any) -> dict[str, Any]:
    kind = {
        "type": "hybrid",
        "phases": [{"type": "postgres", "table_name": "old", "page_size": 500}],
        "topic": "t",
        "handover": {"offsets": {"0": "5"}},
        **COLUMNS,
    }
    return {"sources": {"s": {**kind, **more}}}


def live(kind: str, **more: Any) -> dict[str, Any]:
    own = {
        "webhook": {"listen": "127.0.0.1:80"},
        "websocket": {"url": "wss://host/a"},
        "http": {"url": "https://host/a"},
        "mqtt": {"broker": "mqtts://host", "topics": ["a"]},
    }
    return {"sources": {"s": {"type": kind, **own[kind], **COLUMNS, **more}}}


SECRET = {"secret": "a", "prefix": "Bearer "}


def of_a_package(kind: str, **options: Any) -> dict[str, Any]:
    return {"sources": {"s": {"type": kind, "options": options, **COLUMNS}}}


def numbers(count: int) -> dict[str, Any]:
    return of_a_package("frozen.numbers", count=count)


def plan(said: dict[str, Any]) -> Flow:
    query = "SELECT u, count(*) AS n FROM s GROUP BY u"
    file = {"name": "p", "query": query, "output": {"topic": "o", "key": "u"}, **said}
    spec = pipeline_from_mapping(file, Location("p.yaml"), {})
    columns = declared_columns(spec, "s")
    assert columns is not None
    return build_plan(spec, Config(), {"s": columns}).plan


@pytest.mark.parametrize(
    ("before", "after"),
    [
        (files(), files(path="/else", settle="1m")),
        (files(), files(lateness="1m", on_error="skip")),
        (made(), made(records=10)),
        (read(), read(page_size=500)),
        (live("webhook"), live("webhook", listen="127.0.0.1:81", max_backlog=5)),
        (live("websocket"), live("websocket", headers={"A": SECRET, "B": 2}, send=["x", SECRET])),
        (live("http"), live("http", cursor={"field": "a", "parameter": "b"}, next="next")),
        (live("mqtt"), live("mqtt", topics=["b"], user="me", password={"secret": "a"})),
        (live("webhook"), live("mqtt")),  # what was written down stays in the journal
        (of_a_package("frozen.letters", text="a"), of_a_package("frozen.letters", text="b")),
        (of_a_package("frozen.letters", text="a"), of_a_package("pyspark:fake")),
        (of_a_package("pyspark:fake", url="a"), of_a_package("pyspark:fake", url="b")),
        (phases(), phases(phases=[{"type": "postgres", "table_name": "old"}])),
    ],
)
@pytest.mark.usefixtures("frozen_plugins")
def test_a_state_goes_on(before: dict[str, Any], after: dict[str, Any]) -> None:
    old, new = plan(before), plan(after)
    change(old, new)
    assert moved_sources(old, new) == ()
    assert plan_of(plan_text(new)) == new


def test_a_table_that_is_loaded_is_read_again_where_a_state_is_rebuilt() -> None:
    loaded = plan(read(table=True, primary_key=["u"]))
    assert begun_again(loaded, loaded) == ("s",)
    assert begun_again(plan(read()), plan(read())) == ()
    kept = plan(phases(table=True, primary_key=["u"]))
    assert begun_again(kept, kept) == ("s",)
    assert begun_again(plan(files()), plan(read())) == ("s",)


@pytest.mark.parametrize(
    ("before", "after", "words"),
    [
        (TOPIC, files(), "'s' is a source of parquet files, was a topic"),
        (files(), TOPIC, "'s' is a topic, was a source of parquet files"),
        (files(), files(format="csv"), "'s' is a source of csv files, was a source of parquet"),
        (files(format="csv"), files(format="csv", header=True), "of csv files with a header, was"),
        (files(), made(), "'s' is a generator of 10 records a second, seed 0 (u sequence), was"),
        (TOPIC, live("webhook"), "'s' is a webhook, was a topic"),
        (live("websocket"), made(), "(u sequence), was a websocket"),
        (live("http"), TOPIC, "'s' is a topic, was a URL that is polled"),
        (files(), live("mqtt"), "'s' is an MQTT broker, was a source of parquet files"),
        (made(), made(rate=20), "'s' is a generator of 20 records a second, seed 0 (u sequence)"),
        (
            files(),
            read(),
            "'s' is postgres table shop.orders of connection default (u), was a source",
        ),
        (read(), read(where="a > 3"), "default (u) where a > 3, was postgres table shop.orders of"),
        (read(), read(page_key=["a", "b"]), "connection default (u) by a, b, was postgres table"),
        (read(), read(columns={"u": "VARCHAR", "v": "INT"}), "connection default (u, v), was"),
        (read(), read(connection="old"), "shop.orders of connection old (u), was postgres table"),
        (read(), read(type="clickhouse"), "'s' is clickhouse table shop.orders of connection"),
        (
            read(),
            phases(),
            "'s' is postgres table old of connection default (u); then topic t, was",
        ),
        (phases(), phases(job="true"), "'s' is postgres table old of connection default (u), was"),
        (phases(), phases(topic="v"), "(u); then topic v, was postgres table old of connection"),
        (made(), made(seed=1), "'s' is a generator of 10 records a second, seed 1 (u sequence)"),
        (numbers(1), numbers(2), "is plugin frozen.numbers (count: 2), was plugin frozen.numbers"),
        (made(), of_a_package("pyspark:fake"), "'s' is PySpark's data source fake, was a"),
    ],
)
@pytest.mark.usefixtures("frozen_plugins")
def test_a_state_does_not_go_on(before: dict[str, Any], after: dict[str, Any], words: str) -> None:
    old, new = plan(before), plan(after)
    assert moved_sources(old, new) == ("s",)
    with pytest.raises(StateError) as raised:
        change(old, new)
    assert words in raised.value.message
