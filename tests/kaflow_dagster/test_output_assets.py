"""Every output of a pipeline is an asset of its own, made by the one stream."""
# pyright: basic

import dagster as dg
import pytest

from kaflow_dagster.assets.specs import build_kaflow_specs
from kaflow_dagster.assets.translator import KaflowTranslator
from kaflow_dagster.assets.views import ProjectView, view_project
from kaflow_dagster.build import build_kaflow_defs
from kaflow_dagster.streams.outputs import outputs_of
from kaflow_dagster.streams.reports import assets_of
from kaflow_dagster.tables import backfill
from kaflow_engine.api import checks
from kaflow_engine.api.checks import Checked, CheckResult
from kaflow_engine.api.project import checks_of
from kaflow_engine.api.status import Progress

pytestmark = pytest.mark.slow

FILE = """
name: enriched
relations:
  known:
    query: SELECT o.id, o.amount, c.country FROM orders o LEFT JOIN customers c ON o.customer = c.id
outputs:
  - from: known
    topic: all_orders
    description: Every order.
    columns: {amount: {description: In euros.}}
    checks: [not_null: id]
  - {query: SELECT id FROM known WHERE country = 'NL', topic: dutch_orders, format: avro, key: id}
  - {query: "SELECT id, amount FROM known", table: amounts, checks: [not_null: id, unique: id]}
  - {query: "SELECT id, country FROM known", table: countries}
state: {dimensions: [customers]}
backfill: {start: 2025-01-01, schedule: "30 5 * * *"}
topics:
  orders: {columns: {id: VARCHAR, amount: BIGINT, customer: VARCHAR}}
  customers: {columns: {id: VARCHAR, country: VARCHAR}}
"""
TOPICS = [dg.AssetKey(["kafka", name]) for name in ("all_orders", "dutch_orders")]
TABLES = [dg.AssetKey(["tables", name]) for name in ("amounts", "countries")]
LETTERS = dg.AssetKey(["kafka", "enriched.dead_letters"])


@pytest.fixture
def project(tmp_path):
    (tmp_path / "p.yaml").write_text(FILE)
    return view_project([tmp_path])


def test_all_depend_on_the_stream(project, tmp_path):
    defs = build_kaflow_defs([tmp_path])
    dg.Definitions.validate_loadable(defs)
    found = {spec.key: spec for spec in defs.resolve_all_asset_specs()}
    stream = dg.AssetKey(["streams", "enriched"])
    made = {key for key, spec in found.items() if stream in {dep.asset_key for dep in spec.deps}}
    assert made == {*TOPICS, *TABLES, LETTERS}
    assert found[TOPICS[0]].description == "Every order."
    assert found[TOPICS[1]].description == "Rows of pipeline `enriched`."
    sql = found[stream].metadata["kaflow/sql"].value
    assert "-- relation known\nSELECT o.id" in sql
    assert "-- all_orders\nFROM known\n\n-- dutch_orders\nSELECT id FROM known WHERE" in sql


def test_a_stream_shows_its_transforms(tmp_path):
    relation = "scored: {type: handler, from: orders, url: http://host/score}"
    text = f"name: p\nrelations: {{{relation}}}\noutputs: [{{from: scored, topic: o}}]\n"
    tmp_path.joinpath("p.yaml").write_text(f"{text}topics: {{orders: {{columns: {{id: INT}}}}}}\n")
    (stream,) = view_project([tmp_path]).pipelines
    assert stream.query == "-- relation scored, by a handler\nFROM orders\n\n-- o\nFROM scored"


def test_a_stream_shows_its_dynamic_tables(tmp_path):
    relation = "seen: {type: dynamic_table, from: orders, key: id}"
    query = "SELECT id FROM orders WHERE NOT dynamic_table_check('seen', id)"
    text = f'name: p\nrelations: {{{relation}}}\noutputs: [{{query: "{query}", topic: o}}]\n'
    tmp_path.joinpath("p.yaml").write_text(f"{text}topics: {{orders: {{columns: {{id: INT}}}}}}\n")
    (stream,) = view_project([tmp_path]).pipelines
    assert stream.query == f"-- relation seen, a set of id\nFROM orders\n\n-- o\n{query}"


@pytest.mark.parametrize(
    ("key", "columns", "lineage"),
    [
        (TOPICS[0], ["id", "amount", "country"], ["orders", "orders", "customers"]),
        (TOPICS[1], ["id"], ["orders"]),
        (TABLES[0], ["id", "amount"], ["orders", "orders"]),
        (TABLES[1], ["id", "country"], ["orders", "customers"]),
    ],
    ids=lambda value: value.path[-1] if isinstance(value, dg.AssetKey) else "",
)
def test_each_has_its_own_columns_and_lineage(project, tmp_path, key, columns, lineage):
    specs = build_kaflow_defs([tmp_path]).resolve_all_asset_specs()
    metadata = next(spec.metadata for spec in specs if spec.key == key)
    schema = metadata["dagster/column_schema"].columns
    assert [column.name for column in schema] == columns
    deps = metadata["dagster/column_lineage"].deps_by_column
    assert [deps[name][0].asset_key.path[-1] for name in columns] == lineage
    about = [column.description for column in schema]
    assert about == ([None, "In euros.", None] if key == TOPICS[0] else [None] * len(columns))
    keys = [column.name for column in schema if not column.constraints.nullable]
    assert keys == (["id"] if key == TOPICS[1] else [])


def test_one_backfill_fills_all_tables(project, tmp_path):
    repository = build_kaflow_defs([tmp_path]).get_repository_def()
    job = repository.get_job("backfill__enriched_job")
    assert job.asset_layer.executable_asset_keys == set(TABLES)
    assert job.partitions_def is not None
    assert job.partitions_def.get_first_partition_key() == "2025-01-01"
    fills = [s for s in repository.schedule_defs if s.name.startswith("fill__")]
    assert [schedule.name for schedule in fills] == ["fill__enriched"]


def test_tables_that_one_backfill_cannot_fill_are_refused(tmp_path):
    file = tmp_path / "p.yaml"
    file.write_text(FILE.replace("table: countries}", "table: countries, partition: hour}"))
    (broken,) = view_project([tmp_path]).pipelines
    assert broken.problem == (
        f"{file}:14: table 'countries' has a partition for each hour, and table 'amounts' one for "
        "each day: Dagster fills both in one backfill\n"
        "  hint: give them the same partition, or write one of them in another pipeline"
    )


def test_checks_are_on_the_asset_of_their_output(project, tmp_path, monkeypatch):
    repository = build_kaflow_defs([tmp_path]).get_repository_def()
    keys = {*repository.asset_graph.asset_check_keys}
    wanted = {
        dg.AssetCheckKey(TOPICS[0], "not_null_id"),
        dg.AssetCheckKey(TABLES[0], "not_null_id"),
        dg.AssetCheckKey(TABLES[0], "unique_id"),
    }
    assert {key for key in keys if key.asset_key in {*TOPICS, *TABLES}} == wanted
    found, looked = looked_at(repository.get_job("checks__enriched"), monkeypatch)
    assert found == {(key.asset_key, key.name, key.asset_key.path[-1]) for key in wanted}
    assert sorted(looked) == ["all_orders", "amounts"]


def looked_at(job, monkeypatch):
    """Run checks over what no one has written; return what was found, and where."""
    looked = []

    def check_output(spec, write, config, last, partitions):
        looked.append(write.target)
        results = [CheckResult(check=c, passed=True, rows=1) for c in checks_of(spec, write)]
        return Checked(what=write.target, rows=1, results=tuple(results))

    monkeypatch.setattr(checks, "check_output", check_output, raising=False)
    with dg.DagsterInstance.ephemeral() as instance:
        done = job.execute_in_process(instance=instance)
    return {(e.asset_key, e.check_name, e.metadata["kaflow/of"].value)
            for e in done.get_asset_check_evaluations()}, looked  # fmt: skip


def test_databases_and_files_are_checked_as_topics_are(tmp_path, monkeypatch):
    (tmp_path / "p.yaml").write_text(
        """
name: kept
outputs:
  - {query: SELECT id FROM orders, type: files, folder: ids, checks: [not_null: id]}
  - {query: SELECT id FROM orders, type: postgres, table: ids, checks: [unique: id]}
topics: {orders: {columns: {id: VARCHAR}}}
"""
    )
    (tmp_path / "kaflow.yaml").write_text(
        "postgres: {connections: {default: {url: 'postgresql://k@db/shop'}}}"
    )
    defs = build_kaflow_defs([tmp_path], tmp_path / "kaflow.yaml")
    repository = defs.get_repository_def()
    found, looked = looked_at(repository.get_job("checks__kept"), monkeypatch)
    assert looked == ["files:ids", "postgres:default.ids"]
    assert {(name, of) for _, name, of in found} == {
        ("not_null_id", "files:ids"),
        ("unique_id", "postgres:default.ids"),
    }
    assert {key for key, *_ in found} <= {spec.key for spec in defs.resolve_all_asset_specs()}


def test_reports_are_about_all_of_them(project):
    (pipeline,) = project.pipelines
    outputs = outputs_of(pipeline, KaflowTranslator())
    assert [(each.kind, each.target, each.key, each.checks) for each in outputs] == [
        ("rows", "all_orders", TOPICS[0], ("not_null_id",)),
        ("rows", "dutch_orders", TOPICS[1], ()),
        ("rows", "amounts", TABLES[0], ("not_null_id", "unique_id")),
        ("rows", "countries", TABLES[1], ()),
        ("letters", "enriched.dead_letters", LETTERS, ()),
    ]
    assert [key for key, _ in assets_of(pipeline, KaflowTranslator()).tables] == TABLES


def test_a_view_survives_as_json(project):
    assert ProjectView.of_json(project.to_json()) == project
    assert {spec.key for spec in build_kaflow_specs(project)} >= {*TOPICS, LETTERS}


def test_a_backfill_of_one_table_reports_the_other_one_too(project, tmp_path, monkeypatch):
    filled = []

    def fill(context, project, name, wanted, pyspark):
        filled.append(name)
        return Progress(pipeline=name, records=3)

    monkeypatch.setattr(backfill, "_fill", fill)
    repository = build_kaflow_defs([tmp_path]).get_repository_def()
    job = repository.get_job("backfill__enriched_job")
    tags = {
        "dagster/asset_partition_range_start": "2025-01-02",
        "dagster/asset_partition_range_end": "2025-01-03",
    }
    with dg.DagsterInstance.ephemeral() as instance:
        done = job.execute_in_process(instance=instance, tags=tags, asset_selection=[TABLES[1]])
        partitions = [instance.get_materialized_partitions(key) for key in TABLES]
    assert done.success
    assert filled == ["enriched"]
    assert partitions == [{"2025-01-02", "2025-01-03"}] * 2


def test_sinks_that_a_file_names_are_assets(tmp_path):
    (tmp_path / "p.yaml").write_text(
        "name: shown\n"
        "outputs:\n"
        "  - {query: SELECT id FROM orders, type: console, description: To look at.}\n"
        "  - {query: SELECT id FROM orders, type: blackhole, name: rest}\n"
        "  - {query: SELECT id FROM orders, type: files, folder: archive}\n"
        "  - {query: SELECT id FROM orders, type: files, folder: 's3://lake/orders/old'}\n"
        "topics: {orders: {columns: {id: VARCHAR}}}\n"
    )
    defs = build_kaflow_defs([tmp_path])
    dg.Definitions.validate_loadable(defs)
    found = {spec.key: spec for spec in defs.resolve_all_asset_specs()}
    console = found[dg.AssetKey(["console", "shown", "rows"])]
    assert (console.kinds, console.description) == ({"console"}, "To look at.")
    assert [dep.asset_key for dep in console.deps] == [dg.AssetKey(["streams", "shown"])]
    names = [column.name for column in console.metadata["dagster/column_schema"].columns]
    assert names == ["id"]
    assert found[dg.AssetKey(["blackhole", "shown", "rest"])].kinds == {"blackhole"}
    files = found[dg.AssetKey(["files", "archive"])]
    assert (files.kinds, files.metadata["dagster/table_name"]) == ({"files"}, "archive")
    assert "dagster/uri" not in files.metadata
    of_bucket = found[dg.AssetKey(["files", "lake", "orders", "old"])]
    assert of_bucket.metadata["dagster/uri"] == "s3://lake/orders/old"
    (view,) = view_project([tmp_path]).pipelines
    reported = outputs_of(view, KaflowTranslator())
    assert [each.target for each in reported] == [
        "console:rows",
        "blackhole:rest",
        "files:archive",
        "files:s3://lake/orders/old",
        "shown.dead_letters",
    ]


@pytest.mark.parametrize(
    ("kind", "address"),
    [("postgres", "url: postgresql"), ("clickhouse", "url: https"), ("iceberg", "uri: postgresql")],
)
def test_a_table_of_a_database_is_one_asset_whoever_writes_it(tmp_path, kind, address):
    config = tmp_path / "kaflow.yaml"
    config.write_text(
        f"{kind}: {{connections: {{house: {{{address}://me:word-of-house@db/x}}}}}}\n"
    )
    (tmp_path / "p.yaml").write_text(
        "name: stored\n"
        "query: SELECT id FROM orders\n"
        f"output: {{type: {kind}, connection: house, table: sales.orders}}\n"
        "topics: {orders: {columns: {id: VARCHAR}}}\n"
    )
    defs = build_kaflow_defs([tmp_path / "p.yaml"], config)
    dg.Definitions.validate_loadable(defs)
    found = {spec.key: spec for spec in defs.resolve_all_asset_specs()}
    table = found[dg.AssetKey([kind, "house", "sales", "orders"])]
    assert table.kinds == {kind}
    assert table.metadata["dagster/table_name"] == "sales.orders"
    assert "word-of-house" not in str([spec.metadata for spec in found.values()])


def test_checks_do_not_begin_again_while_they_go_on(tmp_path):
    tmp_path.joinpath("enriched.yaml").write_text(FILE)
    repository = build_kaflow_defs([tmp_path]).get_repository_def()
    schedule = repository.get_schedule_def("check_regularly__enriched")
    job = repository.get_job("checks__enriched")
    with dg.instance_for_test() as instance:

        def found():
            with dg.build_schedule_context(instance, repository_def=repository) as context:
                tick = schedule.evaluate_tick(context)
            return len(tick.run_requests), tick.skip_message

        assert found() == (1, None)
        run = instance.create_run_for_job(job, status=dg.DagsterRunStatus.STARTED)
        assert found() == (0, "the checks of the last time have not ended")
        instance.report_run_canceled(run)
        assert found() == (1, None)
