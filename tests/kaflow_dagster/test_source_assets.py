"""What a pipeline reads that is no topic is an asset, too."""
# pyright: basic

import dagster as dg

from kaflow_dagster.assets.specs import sources_of
from kaflow_dagster.assets.views import view_project
from kaflow_dagster.build import build_kaflow_defs

FILE = """
name: clicked
owners: [ann@example.com]
query: |
  SELECT c.id, u.name, p.price
  FROM clicks c JOIN users u ON c.u = u.u JOIN prices p ON c.id = p.id
output: {topic: clicked, key: id}
state: {dimensions: [prices]}
sources:
  clicks:
    type: files
    path: /data/clicks
    format: json
    columns: {id: BIGINT, u: VARCHAR}
    description: Every click.
  users:
    type: generator
    records: 10
    values: {u: {distribution: sequence, prefix: u}, name: {distribution: choice, of: [a, b]}}
    table: true
    primary_key: [u]
topics: {prices: {columns: {id: BIGINT, price: BIGINT}}}
"""


def test_sources_are_assets_with_a_kind(tmp_path):
    (tmp_path / "p.yaml").write_text(FILE)
    defs = build_kaflow_defs([tmp_path])
    dg.Definitions.validate_loadable(defs)
    found = {spec.key.to_user_string(): spec for spec in defs.resolve_all_asset_specs()}
    clicks, users = found["files/clicked/clicks"], found["generator/clicked/users"]
    assert (clicks.kinds, users.kinds) == ({"files", "json"}, {"generator"})
    assert clicks.description == "Every click."
    assert users.description.startswith("made-up records, 10 a second, 10 in all")
    assert clicks.metadata["dagster/uri"] == "/data/clicks"
    assert [c.name for c in users.metadata["dagster/column_schema"].columns] == ["u", "name"]
    assert {"kafka/clicks", "kafka/users"}.isdisjoint(found)
    read = {dep.asset_key.to_user_string() for dep in found["streams/clicked"].deps}
    assert read == {"files/clicked/clicks", "generator/clicked/users", "kafka/prices"}
    lineage = found["kafka/clicked"].metadata["dagster/column_lineage"].deps_by_column
    assert [dep.asset_key for dep in lineage["name"]] == [users.key]


def test_translations_may_speak_of_the_names_of_sources(tmp_path):
    (tmp_path / "p.yaml").write_text(FILE)
    found = sources_of(view_project([tmp_path]).pipelines)
    assert [(each.name, each.part.kind) for each in found] == [
        ("clicks", "files"),
        ("users", "generator"),
    ]
