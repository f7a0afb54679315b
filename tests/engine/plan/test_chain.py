"""Pipelines that read what others write."""

# pyright: basic

from pathlib import Path

from kaflow_engine.errors import Location
from kaflow_engine.model.config import Config
from kaflow_engine.model.pipelines.loader import pipeline_from_mapping
from kaflow_engine.plan.planner.dependencies import connected, producers_first
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
    assert list(last.topic("two").columns) == ["twice", "id"]


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
