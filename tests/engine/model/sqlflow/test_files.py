"""How SQLFlow files are recognized, and what they bring of the configuration."""
# pyright: basic

import re
from pathlib import Path

import pytest

from kaflow_engine.connectors.kafka.topic_schemas import with_types
from kaflow_engine.errors import Location, ModelError
from kaflow_engine.masking import without_secrets
from kaflow_engine.model.columns import Column
from kaflow_engine.model.config import Config
from kaflow_engine.model.configuration.load_config import load_config
from kaflow_engine.model.configuration.with_brought import with_brought
from kaflow_engine.model.files.variables import Allowed
from kaflow_engine.model.pipelines.loader import pipeline_from_mapping
from kaflow_engine.model.project import read_project
from kaflow_engine.model.sqlflow.front_end import SqlflowFiles
from kaflow_engine.plan.planner.project import check_project, load_checked
from tests.page import blocks

FILES = Path(__file__).parents[3] / "fixtures" / "sqlflow"
TUTORIAL = FILES / "kafka.postgres.join.yml"
CLICKS = FILES / "clicks.yml"
WINDOW = FILES / "window.yml"
ALLOWED = Config.model_validate({"sql": {"attach": ["postgres", "sqlite"]}})
ENVIRONMENT = {
    "SQLFLOW_KAFKA_BROKERS": "one:9092,two:9092",
    "SQLFLOW_POSTGRES_USERS_URI": "postgresql://me:pass-word@db/testdb",
}


def load(path, config=ALLOWED, environment=ENVIRONMENT):
    (spec,) = load_checked([path], config, environment).pipelines
    return spec, with_brought(config, [spec])


@pytest.mark.parametrize(
    ("text", "own"),
    [
        (CLICKS.read_text(), True),
        (TUTORIAL.read_text(), True),
        (TUTORIAL.read_text().replace("\n", "\r\n"), True),
        ("pipeline:\n\n  source: {}\n\n  sink: {}\n", True),
        ("pipeline:\n  source: {}\n  sink: {}\n", True),
        ("# first\npipeline: # mine\n{% if X %}\n  source: {}\n{% endif %}\n  sink: {}\n", True),
        ("pipeline:\n  source: {}\n", False),
        ("pipeline: orders\nsource: a\nsink: b\n", False),
        ("- case: x\n  pipeline:\n    source: {}\n    sink: {}\n", False),
        ("name: p\nquery: SELECT 1\noutput: {topic: o}\n", False),
    ],
)
def test_a_file_is_known_by_its_text(text, own):
    assert SqlflowFiles().claims(text) is own


def test_a_file_of_a_folder_stands_beside_others(tmp_path):
    (tmp_path / "p.yaml").write_text("name: p\nquery: SELECT a FROM t\noutput: {topic: o}\n")
    (tmp_path / "clicks.yml").write_text(CLICKS.read_text())
    found = check_project([tmp_path], ALLOWED, {})
    assert [(each.name, each.front_end) for each in found.pipelines] == [
        ("clicks", "SQLFlow file"),
        ("p", "pipeline file"),
    ]


def test_brackets_of_templates_and_dollars_are_no_variables_of_others(tmp_path):
    path = tmp_path / "p.yml"
    path.write_text(CLICKS.read_text().replace("users.name, count", "'${HOME}' AS h, count", 1))
    (spec,) = read_project([path], ALLOWED, {}).pipelines
    assert "${HOME}" in (spec.queried["handler"].query or "")


def test_the_file_of_the_page_is_right(tmp_path):
    (text,) = blocks("yaml", "from-sqlflow.md")
    path = tmp_path / "page.yml"
    path.write_text(text)
    spec, config = load(path, environment={})
    assert (spec.name, config.kafka.brokers) == ("clicks-with-users", ("localhost:9092",))


def test_what_a_file_says_stands_over_the_configuration():
    spec, config = load(TUTORIAL)
    assert config.kafka.brokers == ("one:9092", "two:9092")
    assert config.kafka.consumer.group == "test"
    assert config.origin("kafka", "brokers") == f"{TUTORIAL}:18"
    connection = config.postgres.connections["kafka-postgres-join.pgusersdb"]
    assert connection.url == ENVIRONMENT["SQLFLOW_POSTGRES_USERS_URI"]
    assert "pass-word" not in repr(config)
    assert spec.sources["pgusersdb.users"].attached


def test_the_command_line_stands_over_a_file():
    config = load_config(None, {}, {"kafka.brokers": "mine:9092", "sql.attach": "postgres"})
    assert load(TUTORIAL, config)[1].kafka.brokers == ("mine:9092",)


REGISTRY = "pipeline:\n  schema_registry: {url: 'http://me:word-of-file@file:8081'}\n"


@pytest.mark.parametrize(
    ("variable", "counts"),
    [("KAFLOW__KAFKA__SCHEMA_REGISTRY", True), ("KAFLOW_DEFAULT__KAFKA__SCHEMA_REGISTRY", False)],
)
def test_the_environment_stands_over_a_file_and_its_defaults_below(tmp_path, variable, counts):
    path = tmp_path / "p.yml"
    path.write_text(CLICKS.read_text().replace("pipeline:\n", REGISTRY, 1))
    _, config = load(path, load_config(None, {variable: "http://mine:1"}, {"sql.attach": "sqlite"}))
    mine = ("http://mine:1", f"environment {variable}")
    of_file = ("http://me:word-of-file@file:8081", f"{path}:5")
    found = (config.kafka.schema_registry, config.origin("kafka", "schemaRegistry"))
    assert found == (mine if counts else of_file)


def test_secrets_of_a_file_are_masked(tmp_path):
    path = tmp_path / "p.yml"
    path.write_text(CLICKS.read_text().replace("pipeline:\n", REGISTRY, 1))
    load(path)
    assert without_secrets("at word-of-file") == "at ***"


def test_files_that_disagree_do_not_run_together(tmp_path):
    for name in ("a", "b"):
        text = CLICKS.read_text().replace("localhost:9092", f"{name}:9092")
        text = text.replace("name: clicks", f"name: {name}").replace("topic: out", f"topic: {name}")
        (tmp_path / f"{name}.yml").write_text(text)
    project = load_checked([tmp_path], ALLOWED, {})
    with pytest.raises(ModelError) as raised:
        with_brought(ALLOWED, project.pipelines)
    assert str(raised.value) == (
        f"{tmp_path}/b.yml:12: 'kafka.brokers' is another one here than at {tmp_path}/a.yml:12, "
        "and these pipelines run together\n"
        "  hint: run them in commands of their own, or say the same in both"
    )


def test_a_run_is_as_long_as_the_file_says():
    """Its size and its interval are those of the file (D6)."""
    spec, _ = load(CLICKS, environment={})
    batch = spec.queried["handler"].batch
    assert (batch.size, batch.every) == (10, 30_000)


def test_rows_that_mean_something_alone_make_no_runs():
    spec, _ = load(TUTORIAL)
    assert spec.relations == {}
    assert spec.topic("input-user-clicks-demo").wait_for


@pytest.mark.parametrize(
    ("patterns", "seen"),
    [(("KAFLOW_*",), {"KAFLOW_A", "SQLFLOW_A"}), (("TEAM_*",), set())],
)
def test_variables_of_files_are_allowed_unless_the_configuration_says_which(patterns, seen):
    values = {"KAFLOW_A": "1", "SQLFLOW_A": "2", "HOME": "3"}
    assert set(Allowed(values, patterns).beside(SqlflowFiles.variables)) == seen


@pytest.mark.parametrize(
    ("name", "called"),
    [("kafka postgres/join", "kafka-postgres-join"), ("a.b_c-1", "a.b_c-1"), ("…", "pipeline")],
)
def test_a_name_becomes_one_that_a_pipeline_may_have(tmp_path, name, called):
    path = tmp_path / "p.yml"
    path.write_text(CLICKS.read_text().replace("name: clicks", f"name: '{name}'"))
    assert load(path, environment={})[0].name == called


def test_a_window_is_filled_by_what_stands_behind_the_name_of_its_table(tmp_path):
    path = tmp_path / "p.yml"
    path.write_text(WINDOW.read_text().replace("cities", "selected_cities"))
    spec, _ = load(path, environment={})
    query = spec.relations["selected_cities"].query or ""
    assert query.startswith("SELECT date_trunc('hour', _time) AS bucket")


def test_each_reading_of_closed_windows_is_replaced_where_it_stands(tmp_path):
    path = tmp_path / "p.yml"
    emit = "SELECT a.n FROM (SELECT n FROM closed) AS a, closed"
    path.write_text(re.sub("emit_sql: .*", f"emit_sql: {emit}", WINDOW.read_text()))
    (spec,) = read_project([path], ALLOWED, {}).pipelines
    assert spec.query == (
        'SELECT a.n FROM (SELECT n FROM "cities" AS closed) AS a, "cities" AS closed'
    )


def test_types_of_some_columns_are_laid_over_those_that_are_found():
    found = (Column("At", "VARCHAR"), Column("n", "BIGINT"))
    known = spec_with(types={"at": "datetime"})
    assert with_types(known, "t", found) == (Column("At", "TIMESTAMP"), Column("n", "BIGINT"))


@pytest.mark.parametrize(
    ("types", "says"),
    [({"m": "INT"}, "unknown column 'm'"), ({"n": "TIMES"}, "unknown type 'TIMES' of column 'n'")],
)
def test_types_that_fit_no_column(types, says):
    with pytest.raises(ModelError, match=says):
        with_types(spec_with(types=types), "t", (Column("n", "BIGINT"),))


def spec_with(**topic):
    author = {"name": "p", "query": "SELECT n FROM t", "output": {"topic": "o"}}
    return pipeline_from_mapping({**author, "topics": {"t": topic}}, Location("p.yaml", 1))


def test_columns_that_are_not_known_are_declared_where_the_file_has_them():
    found = check_project([WINDOW], ALLOWED, {})
    ((notice,),) = [each.notices for each in found.pipelines]
    assert str(notice) == (
        f"{WINDOW}:21: the columns of topic 'events' are not known yet\n"
        "  hint: declare them under pipeline.source.columns, or let the topic have a first record"
    )
