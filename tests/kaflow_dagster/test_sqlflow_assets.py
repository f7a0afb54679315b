"""A file of SQLFlow is an asset as any pipeline is, with what it brings of the configuration."""
# pyright: basic

from pathlib import Path

import dagster as dg

from kaflow_dagster.assets.views import view_project
from kaflow_dagster.build import build_kaflow_defs

CLICKS = Path(__file__).parents[1] / "fixtures" / "sqlflow" / "clicks.yml"


def test_its_topic_depends_on_its_stream(tmp_path):
    (tmp_path / "clicks.yml").write_text(CLICKS.read_text())
    config = tmp_path / "kaflow.yaml"
    config.write_text("sql: {attach: [sqlite]}\n")
    defs = build_kaflow_defs([tmp_path], config=config)
    dg.Definitions.validate_loadable(defs)
    found = {spec.key: spec for spec in defs.resolve_all_asset_specs()}
    stream, rows = dg.AssetKey(["streams", "clicks"]), dg.AssetKey(["kafka", "out"])
    assert stream in {dep.asset_key for dep in found[rows].deps}
    assert found[stream].metadata["kaflow/front_end"].value == "SQLFlow file"


def test_what_is_not_allowed_is_said_of_the_one_file(tmp_path):
    (tmp_path / "clicks.yml").write_text(CLICKS.read_text())
    (pipeline,) = view_project([tmp_path]).pipelines
    assert "ATTACH of sqlite is not allowed" in (pipeline.problem or "")
