"""Files of processors: which are known, what their YAML says, and what they become."""

from pathlib import Path
from typing import Any

import pytest
import yaml

from kaflow_engine.errors import Location, ModelError
from kaflow_engine.model.configuration.load_config import load_config
from kaflow_engine.model.outputs.new_topic import NewTopicSpec
from kaflow_engine.model.outputs.output_specs import SchemaSpec
from kaflow_engine.model.project import load_project, read_project
from kaflow_engine.model.specs import PipelineSpec

SQL = "SET processing.guarantee='at_least_once';\n\nINSERT INTO out\nSELECT STREAM a\n\nFROM t;\n"
ABOUT: dict[str, Any] = {
    "name": "renamed",
    "processor_id": "stable-1",
    "runners": 3,
    "description": "what it does",
    "owners": ["team"],
    "topics": {"t": {"columns": {"a": "INTEGER"}, "key_columns": {"id": "INTEGER"}}},
}

INT_KEY: dict[str, Any] = {"key_format": "int", "key_columns": {"id": "INTEGER"}}


@pytest.fixture(autouse=True)
def _in_a_folder_of_its_own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def write(**files: object) -> None:
    for name, content in files.items():
        path = Path(name.replace("__", "."))
        text = content if isinstance(content, str) else yaml.safe_dump(content, sort_keys=False)
        path.write_text(text, encoding="utf-8")


def one(*paths: str) -> PipelineSpec:
    (spec,) = load_project([Path(path) for path in paths], variables={}).pipelines
    return spec


def test_sql_alone_is_a_pipeline_called_as_its_file() -> None:
    write(daily__processor__sql=SQL)
    spec = one(".")
    assert (spec.name, spec.id, spec.delivery) == ("daily", "daily", "at_least_once")
    assert [(w.output.topic, w.output.format, w.query) for w in spec.writes] == [
        ("out", "json", 'SELECT "a" AS "a", _key AS _key\n\n FROM "t"')
    ]
    assert spec.place("outputs", 0, "query") == Location("daily.processor.sql", 4, 1)


def test_yaml_beside_the_sql_says_the_rest() -> None:
    write(daily__processor__sql=SQL, daily__processor__yaml=ABOUT)
    both = ("daily.processor.sql", "daily.processor.yaml")
    for spec in (one("."), one(*both), *map(one, both)):
        assert (spec.name, spec.id, spec.partitions) == ("renamed", "stable-1", 3)
        assert (spec.description, spec.owners) == ("what it does", ("team",))
        assert spec.topics["t"].columns == {"a": "INTEGER"}


def test_a_processor_is_called_as_its_file_where_its_yaml_does_not_say() -> None:
    write(daily__processor__sql=SQL, daily__processor__yaml={"topics": ABOUT["topics"]})
    assert one(".").name == one("daily.processor.sql").name == "daily"


def test_operators_bind_as_they_are_written() -> None:
    write(
        p__processor__sql="INSERT INTO o SELECT STREAM a || b + 1 * c AS x, 1 + a || b AS y FROM t;"
    )
    assert one(".").writes[0].query == (
        'SELECT ("a" || "b") + 1 * "c" AS "x", 1 + "a" || "b" AS "y", _key AS _key FROM "t"'
    )


def test_sql_inside_of_yaml() -> None:
    write(daily__processor__yaml={**ABOUT, "sql": SQL})
    assert one(".").writes[0].output.topic == "out"


def test_settings_of_the_sql_reach_the_topics_of_the_yaml() -> None:
    sql = "SET error.policy='fail';\nINSERT INTO o SELECT TABLE SUM(a) AS s FROM t GROUP BY _key;"
    write(p__processor__yaml={**ABOUT, "sql": sql})
    topic = one(".").topics["t"]
    assert (topic.table, topic.on_error, topic.columns) == (True, "fail", {"a": "INTEGER"})


@pytest.mark.parametrize(
    ("store", "query"),
    [
        ("", 'SELECT "a" AS "a" FROM "t"'),
        ("STORE KEY AS AVRO", 'SELECT "a" AS "a" FROM "t"'),
        ("STORE KEY AS JSON", 'SELECT "a" AS "a", _key AS _key FROM "t"'),
    ],
)
def test_keys_that_are_avro_go_on_as_they_came(store: str, query: str) -> None:
    topic = {"key_format": "avro", "key_columns": {"id.nr": "INTEGER", "shop": "VARCHAR"}}
    sql = f"INSERT INTO out {store} SELECT STREAM a FROM t;"
    write(p__processor__yaml={"topics": {"t": topic}, "sql": sql})
    spec = one(".")
    assert spec.writes[0].query == query
    assert spec.topics["t"].key_type == 'STRUCT("id" STRUCT("nr" INTEGER), "shop" VARCHAR)'


def test_output_topics_get_what_is_set_of_all_and_of_one() -> None:
    text = """
    SET defaults.topic.autocreate=true;
    SET defaults.topic.partitions=6;
    SET defaults.topic.retention.ms='1000';
    SET defaults.topic.value.avro.namespace='shop';
    SET topic.`a-b`.partitions='2';
    SET topic.`a-b`.replication=3;
    SET topic.`a-b`.value.avro.record='Row';
    INSERT INTO a-b STORE VALUE AS AVRO SELECT STREAM x FROM t;
    INSERT INTO c SELECT STREAM x FROM t;
    """
    write(p__processor__sql=text)
    one_of_them, other = (write.output for write in one(".").writes)
    kept = {"retention.ms": "1000"}
    assert one_of_them.new_topic == NewTopicSpec(partitions=2, replication_factor=3, config=kept)
    assert one_of_them.schema_ == SchemaSpec(name="shop.Row")
    assert other.new_topic == NewTopicSpec(partitions=6, config=kept)


def test_models_and_processors_stand_side_by_side() -> None:
    Path("models").mkdir()
    Path("models/m.sql").write_text("SELECT a FROM u", encoding="utf-8")
    Path("models/p.processor.sql").write_text(SQL, encoding="utf-8")
    found = load_project([Path("models")], variables={})
    assert [each.name for each in found.pipelines] == ["m", "p"]


@pytest.mark.parametrize(
    ("files", "error"),
    [
        (
            {"p__processor__yaml": {**ABOUT, "sql": SQL}, "p__processor__sql": SQL},
            "p.processor.yaml:13: the SQL of this processor stands here, and in p.processor.sql\n"
            "  hint: remove one of them",
        ),
        (
            {"p__processor__yaml": ABOUT},
            "p.processor.yaml:1: this processor has no SQL\n"
            "  hint: write sql: |, or put it beside this file, into <name>.processor.sql",
        ),
        (
            {"p__processor__yaml": "name: p\nsqll: x\nrunners: 0\n"},
            "p.processor.yaml:2: unknown key 'sqll'\n  hint: did you mean 'sql'?\n"
            "p.processor.yaml:3: 'runners' must be greater than 0",
        ),
        (
            {"p__processor__yaml": "name: p\nsql: |\n  INSERT INTO out\n  SELECT a FROM t;\n"},
            "p.processor.yaml:4:10: expected STREAM or TABLE, found 'a'\n"
            "  hint: SELECT STREAM takes each record as an event, SELECT TABLE as the last value "
            "of its key",
        ),
        (
            {"p__processor__yaml": {**ABOUT, "topics": {"t": INT_KEY}, "sql": SQL}},
            "p.processor.yaml:11: keys of 't' are int, and have no fields\n"
            "  hint: remove key_columns: such a key is one value, _key",
        ),
        ({"p__processor__yaml": "- a\n"}, "p.processor.yaml:1: this is not a processor"),
    ],
)
def test_mistakes(files: dict[str, object], error: str) -> None:
    write(**files)
    with pytest.raises(ModelError) as raised:
        load_project([Path()], variables={})
    assert str(raised.value).startswith(error)


def test_a_mistake_of_a_neighbour_does_not_matter() -> None:
    Path("pipelines").mkdir()
    Path("pipelines/a.processor.sql").write_text(SQL, encoding="utf-8")
    Path("pipelines/b.processor.sql").write_text("INSERT", encoding="utf-8")
    found = read_project([Path("pipelines/a.processor.sql")], variables={})
    assert [each.name for each in found.pipelines] == ["a"]
    assert found.mistakes == ()


def test_the_configuration_says_what_a_processor_does_not_of_topics() -> None:
    shared = {
        "t": {"columns": {"a": "INTEGER", "b": "VARCHAR"}, "lateness": "1m", "nullable": ["b"]},
        "other": {"columns": {"x": "INTEGER"}},
    }
    write(kaflow__yaml={"topics": shared}, daily__processor__sql=SQL)
    config = load_config(Path("kaflow.yaml"), {})
    (spec,) = load_project([Path()], config, variables={}).pipelines
    assert [*spec.topics] == ["t"]
    assert spec.topics["t"].columns == {"a": "INTEGER", "b": "VARCHAR"}
    assert spec.place("topics", "t", "columns") == Location("kaflow.yaml:4")
    about: dict[str, Any] = {"topics": {"t": {"columns": {"a": "BIGINT"}, "nullable": []}}}
    write(daily__processor__yaml=about)
    (spec,) = load_project([Path()], config, variables={}).pipelines
    assert (spec.topics["t"].columns, spec.topics["t"].lateness) == ({"a": "BIGINT"}, 60_000)
    write(kaflow__yaml={"topics": {"t": {"columns": {"a": "INTEGER"}, "nullable": ["b"]}}})
    Path("daily.processor.yaml").unlink()
    with pytest.raises(ModelError, match=r"kaflow\.yaml:5: unknown column 'b'"):
        load_project([Path()], load_config(Path("kaflow.yaml"), {}), variables={})


def test_an_application_id_is_a_consumer_group() -> None:
    sql = f"SET auto.offset.reset='latest';\n{SQL}"
    write(daily__processor__sql=sql, daily__processor__yaml={"application_id": "lenses.app-1"})
    assert (one(".").consumer_group, one(".").auto_offset_reset) == ("lenses.app-1", "latest")
