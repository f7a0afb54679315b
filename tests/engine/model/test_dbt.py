"""dbt-style models become pipelines."""

# pyright: basic

from pathlib import Path

import pytest

from kaflow_engine.errors import Location
from kaflow_engine.model.checks import checks_of
from kaflow_engine.model.configuration.load_config import load_config
from kaflow_engine.model.outputs.sink_specs import FilesSpec
from kaflow_engine.model.project import load_project

SOURCES = """\
sources:
  - name: shop
    tables:
      - name: orders
        identifier: shop.orders
        config: {event_time: at}
        columns: [{name: id, data_type: VARCHAR}, {name: at, data_type: BIGINT}]
      - name: users
        config: {dimension: true}
"""


def project(folder: Path, files: dict[str, str]) -> Path:
    for name, text in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return folder


def pipelines(folder: Path, variables: dict[str, str] | None = None):
    found = load_project([folder], load_config(None, {}), variables or {})
    return {pipeline.name: pipeline for pipeline in found.pipelines}


def test_a_model_is_a_pipeline(tmp_path: Path) -> None:
    model = (
        "{{ config(\n    key='id',\n    state={'events': {'default_ttl': '2h'}},\n) }}\n"
        "SELECT o.id, u.name\nFROM {{ source('shop', 'orders') }} o\n"
        "JOIN {{ source('shop', 'users') }} u ON o.id = u.id;\n"
    )
    about = (
        "models:\n  - name: facts\n    description: What it is.\n    meta: {tier: '1'}\n"
        "    config: {topic: facts.out, key: name, owners: [ann], delivery: at_least_once,\n"
        "             group: facts, trace_context: true}\n"
        "    columns: [{name: id, description: Its number.}]\n"
    )
    files = {"models/s.yml": SOURCES, "models/facts.sql": model, "models/facts.yml": about}
    found = pipelines(project(tmp_path, files))["facts"]
    assert found.query.split("\n")[5] == 'FROM "shop.orders" o'  # its line in the file
    assert found.place("query") == Location(str(tmp_path / "models/facts.sql"), 1)
    into = found.output  # the model goes over
    assert (into.topic, into.key, into.trace_context) == ("facts.out", "id", True)
    assert (found.delivery, found.group) == ("at_least_once", "facts")
    assert found.state.dimensions == ("users",)
    assert found.state.events.default_ttl == 7_200_000
    assert found.topics["shop.orders"].columns == {"id": "VARCHAR", "at": "BIGINT"}
    assert found.topics["shop.orders"].event_time == "at"
    assert (found.description, found.owners, found.meta) == ("What it is.", ("ann",), {"tier": "1"})
    assert found.columns["id"].description == "Its number."


def test_a_source_may_be_a_table(tmp_path: Path) -> None:
    said = "config: {table: true, primary_key: [id], operation: 'column:op', retain: 1d}"
    files = {
        "models/s.yml": SOURCES.replace("config: {dimension: true}", said),
        "models/m.sql": "SELECT id, name FROM {{ source('shop', 'users') }}",
    }
    users = pipelines(project(tmp_path, files))["m"].topics["users"]
    assert (users.table, users.primary_key, users.retain) == (True, ("id",), 86_400_000)
    assert users.operation == "column:op"


def test_a_source_may_be_live(tmp_path: Path) -> None:
    about = """
sources:
  - name: plant
    tables:
      - name: hooks
        config: {type: webhook, listen: "127.0.0.1:80", lateness: 1m}
        columns: [{name: id, data_type: BIGINT}]
      - name: trades
        config: {type: websocket, url: wss://host/a, headers: {A: {secret: s}}, send: [hello]}
        columns: [{name: id, data_type: BIGINT}]
      - name: rates
        config: {type: http, url: https://host/a, cursor: {field: id, parameter: after}}
        columns: [{name: id, data_type: BIGINT}]
      - name: sensors
        config: {type: mqtt, broker: mqtt://host, topics: [a/#], password: {secret: s}, user: u}
        columns: [{name: id, data_type: BIGINT}]
"""
    names = ("hooks", "trades", "rates", "sensors")
    read = [f"SELECT id FROM {{{{ source('plant', '{name}') }}}}" for name in names]
    files = {"models/s.yml": about, "models/m.sql": " UNION ALL ".join(read)}
    found = pipelines(project(tmp_path, files))["m"].sources
    assert [found[name].type for name in names] == ["webhook", "websocket", "http", "mqtt"]
    assert found["hooks"].lateness == 60_000
    assert [path for name in names for path, _ in found[name].secrets] == [
        ("headers", "A", "secret"),
        ("password", "secret"),
    ]


def test_a_source_may_be_no_topic(tmp_path: Path) -> None:
    said = "config: {type: files, path: /in, format: csv, header: true, dimension: true}"
    made = "config: {type: generator, values: {at: {distribution: time}}}"
    topic = "config: {type: kafka, lateness: 1m}"
    about = f"""
sources:
  - name: shop
    tables:
      - {{name: users, {said}, columns: [{{name: id, data_type: BIGINT}}]}}
      - {{name: ticks, identifier: ticks.made, {made}}}
      - {{name: orders, {topic}}}
"""
    read = [f"{{{{ source('shop', '{name}') }}}}" for name in ("ticks", "users", "orders")]
    joined = f"JOIN {read[1]} u ON t.at = u.id JOIN {read[2]} o ON o.id = u.id"
    query = f"SELECT t.at FROM {read[0]} t {joined}"
    files = {"models/s.yml": about, "models/m.sql": query}
    found = pipelines(project(tmp_path, files))["m"]
    users, ticks = found.sources["users"], found.sources["ticks.made"]
    assert (users.type, users.header, users.columns) == ("files", True, {"id": "BIGINT"})
    assert (ticks.type, ticks.typed) == ("generator", {"at": "BIGINT"})
    assert found.topics["orders"].lateness == 60_000
    assert found.state.dimensions == ("users",)


def test_a_source_may_be_a_table_of_a_database(tmp_path: Path) -> None:
    about = """
sources:
  - name: shop
    tables:
      - {name: orders, config: {type: postgres, table_name: shop.orders, where: a > 3}}
      - name: clicks
        config: {type: clickhouse, connection: web, table_name: clicks, page_size: 500}
        columns: [{name: a, data_type: BIGINT}]
      - name: views
        config: {type: hybrid, phases: [{type: files, path: /in}], dimension: true}
        columns: [{name: a, data_type: BIGINT}]
"""
    read = [f"{{{{ source('shop', '{name}') }}}}" for name in ("orders", "clicks", "views")]
    joins = f"LEFT JOIN {read[1]} c ON o.a = c.a LEFT JOIN {read[2]} v ON o.a = v.a"
    query = f"SELECT o.a FROM {read[0]} o {joins}"
    found = pipelines(project(tmp_path, {"models/s.yml": about, "models/m.sql": query}))["m"]
    orders, clicks = found.sources["orders"], found.sources["clicks"]
    assert (orders.type, orders.table_name, orders.where) == ("postgres", "shop.orders", "a > 3")
    assert (clicks.type, clicks.connection, clicks.page_size) == ("clickhouse", "web", 500)
    assert clicks.columns == {"a": "BIGINT"}
    assert [phase.type for phase in found.sources["views"].phases] == ["files"]


def test_a_source_may_be_of_a_package(tmp_path: Path) -> None:
    options = "options: {size: 3, strict: true}"
    about = f"""
sources:
  - name: shop
    tables:
      - name: orders
        config: {{type: acme.orders, {options}}}
      - name: items
        config: {{type: "pyspark:rest", read: batch, {options}}}
        columns: [{{name: id, data_type: BIGINT}}]
"""
    joined = "{{ source('shop', 'orders') }} o JOIN {{ source('shop', 'items') }} i ON o.id = i.id"
    files = {"models/s.yml": about, "models/m.sql": f"SELECT o.id FROM {joined}"}
    found = pipelines(project(tmp_path, files))["m"]
    orders, items = found.sources["orders"], found.sources["items"]
    assert (orders.type, orders.options) == ("acme.orders", {"size": 3, "strict": True})
    assert (items.read, items.texts) == ("batch", {"size": "3", "strict": "true"})
    assert items.columns == {"id": "BIGINT"}


def test_data_tests_are_checks(tmp_path: Path) -> None:
    about = """
models:
  - name: m
    columns:
      - name: id
        data_tests:
          - not_null
          - unique: {config: {severity: warn}}
          - accepted_values: {name: known, arguments: {values: [a, 1]}}
    data_tests:
      - expect_table_row_count_to_be_between: {min_value: 1}
      - {not_null: {column: id}, name: again, description: Twice.}
"""
    files = {"models/m.sql": "SELECT id FROM t", "models/m.yml": about}
    model = pipelines(project(tmp_path, files))["m"]
    found = checks_of(model, *model.writes)
    assert [(check.name, check.arguments, check.severity) for check in found] == [
        ("not_null_id", {"column": "id"}, "error"),
        ("unique_id", {"column": "id"}, "warn"),
        ("known", {"column": "id", "value_set": ["a", 1]}, "error"),
        ("expect_table_row_count_to_be_between", {"min_value": 1}, "error"),
        ("again", {"column": "id"}, "error"),
    ]
    assert found[-1].description == "Twice."


def test_models_refer_to_models(tmp_path: Path) -> None:
    files = {
        "models/s.yml": SOURCES + "models:\n  - name: big\n    config: {format: avro}\n",
        "models/staged.sql": "{{ config(materialized='ephemeral') }}\n"
        "SELECT id -- the 'number'\nFROM {{ source('shop', 'orders') }}\nWHERE id <> '--x'\n",
        "models/big.sql": "SELECT id FROM {{ ref('staged') }} s",
        "models/all.sql": "SELECT b.id, l.n FROM {{ ref('big') }} b JOIN {{ ref('loud') }} l "
        "ON b.id = l.n",
        "pipelines/loud.yaml": "name: loud\nquery: SELECT 1 AS n FROM x\n"
        "output: {topic: loud.out}\n",
    }
    found = pipelines(project(tmp_path, files))
    assert sorted(found) == ["all", "big", "loud"]
    inner = """(SELECT id FROM "shop.orders" WHERE id <> '--x')"""
    assert found["big"].query == f"SELECT id FROM {inner} s"
    assert found["big"].topics["shop.orders"].event_time == "at"
    assert found["all"].query == 'SELECT b.id, l.n FROM "big" b JOIN "loud.out" l ON b.id = l.n'
    assert found["all"].topics["big"].format == "avro"


def test_a_model_may_be_a_folder_of_files(tmp_path: Path) -> None:
    config = "{{ config(materialized='files', format='csv', partition_by=['day']) }} "
    files = {"models/kept.sql": f"{config}SELECT id, day FROM t"}
    (write,) = pipelines(project(tmp_path, files))["kept"].writes
    assert write.target == "files:kept"
    assert isinstance(write.sink, FilesSpec)
    assert (write.sink.format, write.sink.partition_by) == ("csv", ("day",))


@pytest.mark.parametrize(
    ("config", "target", "settings"),
    [
        (
            "materialized='postgres', connection='house', create=true",
            "postgres:house.kept",
            {"connection": "house", "table": "kept", "create": True},
        ),
        (
            "materialized='clickhouse', mode='upsert', key='id'",
            "clickhouse:default.kept",
            {"connection": "default", "table": "kept", "create": False},
        ),
        (
            "materialized='iceberg', table='sales.kept', interval='1m'",
            "iceberg:default.sales.kept",
            {"connection": "default", "table": "sales.kept", "create": False, "interval": 60_000},
        ),
        (
            "materialized='webhook', connection='alerts', batch=10",
            "webhook:kept",
            {"connection": "alerts", "batch": 10},
        ),
        (
            "materialized='command', sql='INSERT INTO s.t FROM batch', ledger='s.l'",
            "command:kept",
            {"connection": "default", "sql": "INSERT INTO s.t FROM batch", "ledger": "s.l"},
        ),
    ],
)
def test_a_model_may_go_elsewhere(
    tmp_path: Path, config: str, target: str, settings: dict[str, object]
) -> None:
    files = {"models/kept.sql": f"{{{{ config({config}) }}}} SELECT id FROM t"}
    (write,) = pipelines(project(tmp_path, files))["kept"].writes
    assert write.target == target
    assert write.sink is not None
    assert write.sink.settings == settings


def test_variables(tmp_path: Path) -> None:
    model = (
        "{%- set columns = ['a', 'b'] -%}\n"
        "SELECT {{ columns | join(', ') }} FROM {{ env_var('TOPIC') }}\n"
        "WHERE a > {{ var('least') }} AND b < {{ var('most', 7) }}"
    )
    project(tmp_path, {"models/m.sql": model, "kaflow.yaml": "vars: {least: 5}\n"})
    config = load_config(tmp_path / "kaflow.yaml", {})
    (found,) = load_project([tmp_path], config, {"TOPIC": "t"}).pipelines
    assert found.query == "\nSELECT a, b FROM t\nWHERE a > 5 AND b < 7"


def test_a_model_alone_knows_what_stands_around_it(tmp_path: Path) -> None:
    files = {
        "models/s.yml": SOURCES,
        "models/a/one.sql": "SELECT id FROM {{ ref('two') }} t",
        "models/b/two.sql": "{{ config(materialized='ephemeral') }}"
        "SELECT id FROM {{ source('shop', 'orders') }}",
        "models/b/broken.sql": "{{ nonsense",
        "models/three.sql": "SELECT id FROM {{ ref('given') }} g",
        "pipelines/given.yaml": "name: given\nquery: SELECT 1 AS id FROM x\noutput: {topic: g}\n",
    }
    models = project(tmp_path, files) / "models"
    (found,) = load_project([models / "a/one.sql"], None, {}).pipelines
    assert found.name == "one"
    (found,) = load_project([models / "three.sql"], None, {}).pipelines
    assert found.query == 'SELECT id FROM "g" g'
