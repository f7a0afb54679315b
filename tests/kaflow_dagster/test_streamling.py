"""A file of Streamling is a stream with assets, as each pipeline is."""
# pyright: basic

from pathlib import Path

import dagster as dg

from kaflow_dagster.build import build_kaflow_defs

SEED = Path(__file__).parents[1] / "fixtures" / "streamling" / "seed"


def test_its_sinks_are_assets_behind_its_topics(tmp_path):
    (tmp_path / "kaflow.yaml").write_text(
        "postgres: {connections: {postgres_sink: {url: 'postgresql://u@localhost/d'}}}\n"
    )
    for name in ("overview", "quick_start"):
        (tmp_path / f"{name}.yaml").write_text((SEED / f"{name}.yaml").read_text())
    defs = build_kaflow_defs([tmp_path], config=tmp_path / "kaflow.yaml")
    dg.Definitions.validate_loadable(defs)
    found = {spec.key: spec for spec in defs.resolve_all_asset_specs()}
    stream = dg.AssetKey(["streams", "overview"])
    made = {key for key, spec in found.items() if stream in {dep.asset_key for dep in spec.deps}}
    assert dg.AssetKey(["kafka", "overview.dead_letters"]) in made
    (table,) = made - {dg.AssetKey(["kafka", "overview.dead_letters"])}
    assert table.path[-1].endswith("large_transactions")
    read = {dep.asset_key for dep in found[stream].deps}
    assert dg.AssetKey(["kafka", "raw.event.transaction"]) in read
    assert dg.AssetKey(["streams", "quick_start"]) in found
