"""What Dagster shows of a project, without running anything."""

# pyright: basic

import subprocess
import sys
import textwrap
from pathlib import Path

import dagster as dg
import pytest

from kaflow_dagster.assets.specs import build_kaflow_specs
from kaflow_dagster.assets.translator import KaflowTranslator
from kaflow_dagster.assets.views import ProjectView, view_project
from kaflow_dagster.build import build_kaflow_defs
from kaflow_dagster.runs.names import dagster_name
from kaflow_engine.errors import ModelError

pytestmark = pytest.mark.slow

ORDERS = """
name: enriched
description: |
  Orders with the tier
  of their user.
owners: [data platform, eva@example.com]
tags: [core, "needs review"]
query: |
  SELECT o.id, u.tier, upper(o.item) AS item
  FROM orders o LEFT JOIN users u ON o.user_id = u.user_id
output: {topic: enriched_orders, format: json, key: id}
state: {dimensions: [users]}
topics:
  orders:
    columns: {id: VARCHAR, user_id: VARCHAR, item: VARCHAR}
    history: {path: /archive/orders}
  users: {columns: {user_id: VARCHAR, tier: VARCHAR}}
"""
LARGE = """
name: large-orders
query: SELECT id, tier FROM enriched_orders WHERE tier = 'gold'
output: {topic: large_orders}
topics:
  enriched_orders: {columns: {id: VARCHAR, tier: VARCHAR}}
"""
BROKEN = """
name: broken
query: SELECT nope FROM orders
output: {topic: x}
topics:
  orders: {columns: {id: VARCHAR}}
"""


@pytest.fixture
def project(tmp_path: Path) -> ProjectView:
    for name, text in {"enriched": ORDERS, "large": LARGE, "broken": BROKEN}.items():
        (tmp_path / f"{name}.yaml").write_text(text)
    return view_project([tmp_path])


def specs(project: ProjectView, translator: KaflowTranslator | None = None) -> dict:
    return {"/".join(s.key.path): s for s in build_kaflow_specs(project, translator)}


def test_what_properties_say_is_shown(tmp_path):
    models = tmp_path / "models"
    models.mkdir()
    (models / "facts.sql").write_text(
        "{{ config(key='id') }}\nSELECT id, n FROM {{ source('shop', 'orders') }}"
    )
    (models / "facts.yml").write_text(
        "sources:\n  - name: shop\n    tables:\n      - name: orders\n        description: All.\n"
        "        columns: [{name: id, data_type: VARCHAR}, {name: n, data_type: BIGINT}]\n"
        "models:\n  - name: facts\n    meta: {tier: '1'}\n"
        "    columns: [{name: id, description: Its number.}]\n"
    )
    found = specs(view_project([tmp_path]))
    assert found["kafka/orders"].description == "All."
    assert found["streams/facts"].metadata["meta/tier"] == "1"
    columns = found["kafka/facts"].metadata["dagster/column_schema"].columns
    assert [(c.name, c.description) for c in columns] == [("id", "Its number."), ("n", None)]


def test_a_group_has_one_job_and_one_sensor(tmp_path):
    for name in ("one", "two"):
        text = LARGE.replace("large-orders", name).replace("large_orders", name)
        (tmp_path / f"{name}.yaml").write_text(f"{text}\ngroup: both\n")
    (tmp_path / "three.yaml").write_text(LARGE)
    defs = build_kaflow_defs([tmp_path])
    names = ("one", "two", "large-orders")
    streams = {"stream__both", dagster_name("stream", "large-orders")}
    assert {job.name for job in defs.jobs} == streams | {
        dagster_name(kind, n) for n in names for kind in ("redrive", "preview")
    }
    assert {sensor.name for sensor in defs.sensors} >= {"supervise__both"}
    assert len(defs.sensors) == 2
    (tmp_path / "three.yaml").write_text(LARGE.replace("large-orders", "both"))
    problem, *_ = view_project([tmp_path]).problems
    assert "one.yaml:" in problem
    assert "group 'both' is called as a pipeline that is not in it" in problem


def test_mistakes_between_files_are_shown(tmp_path):
    (tmp_path / "one.yaml").write_text(ORDERS)
    (tmp_path / "two.yaml").write_text(ORDERS)
    spec = specs(view_project([tmp_path]))["kaflow/mistakes"]
    assert spec.description.startswith(f"BROKEN: {tmp_path}/two.yaml:2: two pipelines have the")


def test_topics_and_streams_are_a_graph(project):
    found = specs(project)
    deps = {
        key: sorted("/".join(dep.asset_key.path) for dep in spec.deps)
        for key, spec in found.items()
    }
    assert deps == {
        "kafka/enriched.dead_letters": ["streams/enriched"],
        "kafka/enriched_orders": ["streams/enriched"],
        "kafka/large-orders.dead_letters": ["streams/large-orders"],
        "kafka/large_orders": ["streams/large-orders"],
        "kafka/orders": [],
        "kafka/users": [],
        "streams/broken": [],
        "streams/enriched": ["kafka/orders", "kafka/users"],
        "streams/large-orders": ["kafka/enriched_orders"],
    }
    assert found["kafka/orders"].metadata["kaflow/history"].value == "/archive/orders"
    assert "kaflow/history" not in found["kafka/users"].metadata


def test_an_output_has_columns_lineage_and_its_source(project):
    spec = specs(project)["kafka/enriched_orders"]
    columns = spec.metadata["dagster/column_schema"].columns
    assert [(c.name, c.type, c.constraints.nullable, dict(c.tags)) for c in columns] == [
        ("id", "VARCHAR", False, {"from_orders.id": ""}),
        ("tier", "VARCHAR", True, {"from_users.tier": ""}),
        ("item", "VARCHAR", True, {"from_orders.item": ""}),
    ]
    lineage = spec.metadata["dagster/column_lineage"].deps_by_column
    assert lineage["tier"] == [dg.TableColumnDep(dg.AssetKey(["kafka", "users"]), "tier")]
    assert "| `item` | `orders.item` |" in spec.metadata["kaflow/lineage"].value
    (place,) = spec.metadata["dagster/code_references"].code_references
    assert (Path(place.file_path).name, place.line_number) == ("enriched.yaml", 2)
    assert sorted(spec.owners) == ["eva@example.com", "team:data_platform"]
    assert {key for key in spec.tags if "dagster" not in key} == {"core", "needs_review"}


def test_a_stream_shows_what_it_does(project):
    spec = specs(project)["streams/enriched"]
    assert spec.description == "Orders with the tier of their user."
    assert "LEFT JOIN users" in spec.metadata["kaflow/sql"].value
    assert "output enriched_orders" in spec.metadata["kaflow/plan"].value
    assert spec.kinds == {"spark", "kafka"}


def test_a_broken_pipeline_is_shown_and_the_others_work(project, tmp_path):
    spec = specs(project)["streams/broken"]
    assert f"{tmp_path}/broken.yaml:3" in spec.description
    assert "nope" in spec.description
    defs = build_kaflow_defs([tmp_path])
    dg.Definitions.validate_loadable(defs)
    repository = defs.get_repository_def()
    jobs = {job.name for job in repository.get_all_jobs() if not job.name.startswith("__")}
    sound = ("enriched", "large_orders_01a3f5")
    assert jobs == {
        f"{kind}__{name}" for kind in ("stream", "redrive", "preview") for name in sound
    }
    sensor = repository.get_sensor_def("supervise__broken")
    with dg.DagsterInstance.ephemeral() as instance:
        said = sensor.evaluate_tick(dg.build_sensor_context(instance))
    assert "broken.yaml:3" in said.skip_message


def test_a_translator_changes_assets_and_all_links_to_them(project):
    class Own(KaflowTranslator):
        def get_asset_spec(self, props):
            spec = super().get_asset_spec(props)
            return spec.replace_attributes(key=spec.key.with_prefix("prod"))

    found = specs(project, Own())
    assert {key.partition("/")[0] for key in found} == {"prod"}
    deps = {d.asset_key.path[0] for spec in found.values() for d in spec.deps}
    assert deps == {"prod"}


def test_a_wrong_configuration_is_no_empty_page(tmp_path):
    (tmp_path / "kaflow.yaml").write_text("kafkaa: {}\n")
    with pytest.raises(ModelError, match=r"kaflow.yaml:1.*kafkaa"):
        build_kaflow_defs([tmp_path], tmp_path / "kaflow.yaml")


def test_a_view_survives_as_json(project):
    assert ProjectView.of_json(project.to_json()) == project


def test_the_version_changes_with_the_meaning(tmp_path):
    file = tmp_path / "p.yaml"
    versions = []
    for text in (ORDERS, f"# a remark\n{ORDERS}", ORDERS.replace("upper", "lower")):
        file.write_text(text)
        versions.append(view_project([file]).pipelines[0].version)
    assert versions[0] == versions[1] != versions[2]


def test_loading_is_light(tmp_path):
    (tmp_path / "p.yaml").write_text(ORDERS)
    code = f"""
        import sys
        from pathlib import Path
        from kaflow_dagster.build import build_kaflow_defs
        build_kaflow_defs([Path({str(tmp_path)!r})]).get_repository_def()
        heavy = ("pyspark", "great_expectations", "confluent_kafka", "rocksdict")
        print([name for name in heavy if name in sys.modules])
    """
    done = subprocess.run(
        [sys.executable, "-W", "error::dagster.BetaWarning", "-c", textwrap.dedent(code)],
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout.strip() == "[]"


def test_pipelines_that_feed_each_other_are_loaded(tmp_path):
    columns = "{columns: {id: VARCHAR, n: BIGINT}}"
    for name, reads, writes in [("up", "low", "high"), ("down", "high", "low")]:
        (tmp_path / f"{name}.yaml").write_text(
            f"name: {name}\nquery: SELECT id, n + 1 AS n FROM {reads} WHERE n < 9\n"
            f"output: {{topic: {writes}, key: id}}\ntopics: {{{reads}: {columns}}}\n"
        )
    (tmp_path / "again.yaml").write_text(
        'name: again\nquery: SELECT id, n FROM "up.dead_letters"\noutput: {topic: low, key: id}\n'
        f"topics: {{up.dead_letters: {columns}}}\n"
    )
    found = specs(view_project([tmp_path]))
    graph = build_kaflow_defs([tmp_path]).resolve_asset_graph()
    assert {"/".join(key.path) for key in graph.toposorted_asset_keys} == set(found)
    assert "kaflow/mistakes" not in found
    assert [dep.asset_key.path[-1] for dep in found["kafka/low"].deps] == ["down"]
    cut = [name for name, spec in found.items() if "in a ring" in (spec.description or "")]
    assert cut == ["streams/up"]
