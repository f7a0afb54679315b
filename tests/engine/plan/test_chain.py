"""Pipelines that read what others write."""

# pyright: basic

from pathlib import Path

import pytest

from kaflow_engine.errors import Location
from kaflow_engine.model.columns import Column
from kaflow_engine.model.config import Config
from kaflow_engine.model.pipelines.loader import pipeline_from_mapping
from kaflow_engine.plan.explain.downstream import Reader, touched
from kaflow_engine.plan.planner.dependencies import circles, connected, producers_first
from kaflow_engine.plan.planner.pipeline_plan import build_plan
from kaflow_engine.plan.planner.project import check_project, load_one

ORDERS = {"columns": {"id": "VARCHAR", "price": "DECIMAL(12, 2)", "at": "TIMESTAMP"}}


def spec(name, topic, output, select="a.id", form="json", **more):
    query = f'SELECT {select} FROM "{topic}" a'
    data = {"name": name, "query": query, "output": {"topic": output, "format": form}, **more}
    return pipeline_from_mapping(data, Location(f"{name}.yaml", 1))


def test_who_writes_a_topic_comes_before_who_reads_it():
    chain = [spec("c", "two", "three"), spec("b", "one", "two"), spec("a", "zero", "one")]
    assert [each.name for each in producers_first(chain)] == ["a", "b", "c"]


def test_a_circle_keeps_its_order():
    circle = [spec("a", "two", "one"), spec("b", "one", "two")]
    assert producers_first(circle) == circle


def test_columns_go_from_pipeline_to_pipeline():
    first = spec("a", "orders", "one", "a.id, a.price * 2 AS twice", topics={"orders": ORDERS})
    chain = [spec("c", "two", "three"), spec("b", "one", "two", "a.twice, a.id"), first]
    last, middle, _ = connected(chain, Config())
    assert middle.topic("one").columns == {"id": "VARCHAR", "twice": "DECIMAL(18,2)"}
    assert list(last.topic("two").columns or ()) == ["twice", "id"]


def test_what_is_declared_stays():
    first = spec("a", "orders", "one", topics={"orders": ORDERS})
    own = {"columns": {"id": "BIGINT"}, "format": "json", "lateness": "5s"}
    second = spec("b", "one", "two", topics={"one": own})
    assert connected([first, second], Config()) == (first, second)


def test_the_registry_knows_avro():
    first = spec("a", "orders", "one", form="avro", topics={"orders": ORDERS})
    second = spec("b", "one", "two", topics={"one": {"lateness": "5s"}})
    topic = connected([first, second], Config())[1].topic("one")
    assert (topic.format, topic.columns, topic.lateness) == ("avro", None, 5_000)


def test_of_two_writers_nobody_knows_the_columns():
    writers = [spec(name, "orders", "one", topics={"orders": ORDERS}) for name in ("a", "b")]
    reader = connected([*writers, spec("c", "one", "two")], Config())[2]
    assert (reader.topic("one").format, reader.topic("one").columns) == ("json", None)


def test_a_mistake_in_the_second_is_found_by_the_columns_of_the_first(tmp_path: Path):
    (tmp_path / "one.yaml").write_text(
        "name: one\nquery: SELECT id FROM orders\noutput: {topic: ids}\n"
        "topics: {orders: {columns: {id: VARCHAR}}}\n"
    )
    (tmp_path / "two.yaml").write_text(
        "name: two\nquery: SELECT number FROM ids\noutput: {topic: numbers}\n"
    )
    (mistake,) = check_project([tmp_path], variables={}).mistakes
    assert str(mistake).startswith(f"{tmp_path}/two.yaml:2: unknown column 'number'")
    assert load_one([tmp_path], "one", variables={}).name == "one"  # what two says does not matter


def writing(name, topic, *outputs, **more):
    return pipeline_from_mapping(
        {"name": name, "outputs": list(outputs), "topics": {topic: ORDERS}, **more},
        Location(f"{name}.yaml", 1),
    )


def test_each_output_gives_its_own_columns_to_its_readers():
    first = writing(
        "a",
        "orders",
        {"query": "SELECT id, price * 2 AS twice FROM orders", "topic": "one"},
        {"query": "SELECT id FROM orders", "topic": "two", "format": "avro"},
        {"query": "SELECT at, id FROM orders", "table": "three"},
        {"query": "SELECT at FROM orders", "topic": "four"},
    )
    readers = [spec(name, name, f"of_{name}", f"a.{column}") for name, column in READ.items()]
    found = dict(zip(READ, connected([*readers, first], Config())[:3], strict=True))
    assert found["one"].topic("one").columns == {"id": "VARCHAR", "twice": "DECIMAL(18,2)"}
    assert (found["two"].topic("two").format, found["two"].topic("two").columns) == ("avro", None)
    assert found["four"].topic("four").columns == {"at": "TIMESTAMP"}
    assert producers_first([*readers, first])[0].name == "a"


READ = {"one": "twice", "two": "id", "four": "at"}


def test_a_circle_names_the_output_that_goes_on():
    up = writing(
        "up",
        "low",
        {"query": "SELECT id FROM low", "topic": "aside"},
        {"query": "SELECT id FROM low", "topic": "high"},
    )
    ((first, second),) = circles([up, spec("down", "high", "low")])
    assert [(each.name, write.output.topic, write.at) for each, write in (first, second)] == [
        ("up", "high", ("outputs", 1)),
        ("down", "low", ("output",)),
    ]


def plan(*outputs):
    found = writing("a", "orders", *outputs)
    return build_plan(found, Config(), {"orders": COLUMNS}).plan


COLUMNS = tuple(Column(name, kind) for name, kind in ORDERS["columns"].items())
COMPUTED = "column 'id' is computed otherwise"
ONE = {"query": "SELECT id, price FROM orders", "topic": "one", "key": "id"}
TWO = {"query": "SELECT id, at FROM orders", "topic": "two"}
KEPT = {"query": "SELECT id FROM orders", "table": "one"}


@pytest.mark.parametrize(
    ("after", "expected"),
    [
        ([TWO, ONE], []),
        ([ONE], [("w", "two", ("no one writes topic 'two' any more",), ())]),
        ([TWO, KEPT], [("r", "one", ("no one writes topic 'one' any more",), ())]),
        (
            [{**ONE, "query": "SELECT id FROM orders"}, {**TWO, "format": "avro"}],
            [
                ("r", "one", ("column 'price' is gone, and it uses it",), ()),
                ("w", "two", ("records are avro from now on, json before",), ()),
            ],
        ),
        (
            [TWO, {**ONE, "query": "SELECT id || '' AS id, price FROM orders", "key": "price"}],
            [("r", "one", (), (COMPUTED, "the key is 'price', was 'id'"))],
        ),
    ],
)
def test_readers_are_touched_by_the_topic_that_they_read(after, expected):
    readers = [
        Reader(pipeline="r", columns={"one": frozenset({"id", "price"})}),
        Reader(pipeline="w", columns={"two": frozenset({"id"}), "else": frozenset()}),
    ]
    found = touched(plan(ONE, TWO), plan(*after), readers, ())
    assert [(t.pipeline, t.topic, t.breaking, t.others) for t in found] == expected


def test_a_pipeline_that_was_removed_touches_the_readers_of_all_its_topics():
    readers = [Reader(pipeline="r", columns={"one": frozenset(), "two": frozenset()})]
    found = touched(plan(ONE, TWO), None, readers, {"two"})
    assert [(each.topic, each.breaking) for each in found] == [
        ("one", ("no one writes topic 'one' any more",))
    ]


UNION = "SELECT a.id FROM orders a UNION ALL SELECT v.{} FROM visits v"


def test_readers_of_a_union_are_touched_by_each_of_its_branches():
    columns = (Column("id", "VARCHAR"), Column("page", "VARCHAR"))
    plans = [
        build_plan(
            pipeline_from_mapping(
                {"name": "a", "query": UNION.format(column), "output": {"topic": "one"}},
                Location("a.yaml", 1),
            ),
            Config(),
            dict.fromkeys(("orders", "visits"), columns),
        ).plan
        for column in ("id", "page")
    ]
    reader = Reader(pipeline="r", columns={"one": frozenset({"id"})})
    (found,) = touched(*plans, [reader], ())
    assert (found.breaking, found.others) == ((), ("column 'id' is computed otherwise",))
    assert touched(plans[0], plans[0], [reader], ()) == ()
