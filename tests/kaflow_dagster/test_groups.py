"""Assets are shown under the folder or the group of their pipeline."""

# pyright: basic

import dagster as dg

from kaflow_dagster.assets.specs import build_kaflow_specs
from kaflow_dagster.assets.views import view_project
from kaflow_dagster.build import build_kaflow_defs

PIPELINE = """
name: {name}
query: SELECT {of}.id FROM {of} LEFT JOIN users u ON {of}.id = u.id
output: {{topic: {name}_out, key: id}}
state: {{dimensions: [users]}}
topics:
  {of}: {{columns: {{id: VARCHAR}}}}
  users: {{columns: {{id: VARCHAR}}}}
"""
FILES = {
    "pipelines/web/clicks.yaml": PIPELINE.format(name="clicks", of="events"),
    "pipelines/web/views.yaml": PIPELINE.format(name="views", of="clicks_out"),
    "pipelines/billing/eu-west/paid.yaml": PIPELINE.format(name="paid", of="payments"),
    "pipelines/plain.yaml": PIPELINE.format(name="plain", of="payments"),
    "pipelines/web/named.yaml": f"{PIPELINE.format(name='named', of='events')}group: ads\n",
    "pipelines/web/broken.yaml": "name: broken\nqery: SELECT 1\n",
    "pipelines/web/twice.yaml": PIPELINE.format(name="clicks", of="events"),
}
EXPECTED = {
    "web": {
        *("streams/clicks", "kafka/clicks_out", "kafka/clicks.dead_letters"),
        *("streams/views", "kafka/views_out", "kafka/views.dead_letters"),
        "streams/broken",
    },
    "billing__eu_west": {"streams/paid", "kafka/paid_out", "kafka/paid.dead_letters"},
    "shop": {"streams/plain", "kafka/plain_out", "kafka/plain.dead_letters"},
    "ads": {"streams/named", "kafka/named_out", "kafka/named.dead_letters"},
    "sources": {"kafka/events", "kafka/payments", "kafka/users"},
    "mistakes": {"kaflow/mistakes"},
}


def project(path, files):
    for name, text in files.items():
        file = path / "shop" / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text)
    return path / "shop"


def groups(folder):
    found = {}
    for spec in build_kaflow_specs(view_project([folder])):
        found.setdefault(spec.group_name, set()).add("/".join(spec.key.path))
    return found


def test_assets_are_grouped_by_folder_or_group(tmp_path):
    assert groups(project(tmp_path, FILES)) == EXPECTED


def test_what_one_group_reads_belongs_to_it(tmp_path):
    kept = {name: text for name, text in FILES.items() if "/web/" in name and "named" not in name}
    assert groups(project(tmp_path, kept))["web"] >= {"kafka/events", "kafka/users"}


def test_whatever_folders_are_called_dagster_takes_the_groups(tmp_path):
    odd = {"pipelines/Größe 2/ü.yaml": PIPELINE.format(name="a", of="events")}
    defs = build_kaflow_defs([project(tmp_path, odd)])
    dg.Definitions.validate_loadable(defs)
    assert {spec.group_name for spec in defs.resolve_all_asset_specs()} == {"Gr__e_2"}
