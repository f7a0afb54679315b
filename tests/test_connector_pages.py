"""The pages of connectors: their pipelines and their configuration are what `explain` takes."""
# pyright: basic

import pytest
import yaml
from click.testing import CliRunner

from kaflow_engine.cli.main import kaflow
from tests.page import DOCS, blocks

PAGES = sorted(f"connectors/{page.name}" for page in DOCS.joinpath("connectors").glob("*.md"))
VALUES = {
    "KAFLOW_PG_URL": "postgresql://kaflow@db:5432/shop",
    "KAFLOW_PG_PASSWORD": "secret",
    "KAFLOW_MYSQL_URL": "mysql://kaflow@db:3306/shop",
    "KAFLOW_CLICKHOUSE_URL": "https://kaflow@clickhouse:8443/web",
    "KAFLOW_CLICKHOUSE_PASSWORD": "secret",
    "KAFLOW_ICEBERG_TOKEN": "token",
    "KAFLOW_S3_KEY": "AKIA0000",
    "KAFLOW_S3_SECRET": "a secret key",
    "ALERTS_URL": "https://alerts.example.com/kaflow",
    "ALERTS_TOKEN": "token",
    "ITEMS_TOKEN": "token",
    "ALERTS_SECRET": "a secret of more than sixteen letters",
}
TITLES = {"generator": "made-up records", "kafka": "topic"}


@pytest.mark.parametrize("page", PAGES)
def test_the_pipelines_of_a_page_are_planned(page, tmp_path, monkeypatch):
    for name, value in VALUES.items():
        monkeypatch.setenv(name, value)
    found = [(text, yaml.safe_load(text)) for text in blocks("yaml", page)]
    pipelines = [(text, spec) for text, spec in found if "name" in spec]
    assert pipelines
    settings = tmp_path / "kaflow.yaml"
    settings.write_text("\n".join(text for text, spec in found if "name" not in spec))
    for text, spec in pipelines:
        file = tmp_path / "pipeline.yaml"
        file.write_text(text)
        said = CliRunner().invoke(kaflow, ["explain", str(file), "--config", str(settings)])
        assert said.exit_code == 0, said.output
        kinds = [*spec.get("outputs", ()), *spec.get("sources", {}).values()]
        assert kinds
        for kind in (each["type"] for each in kinds):
            assert (TITLES[kind] if kind in TITLES else kind) in said.output
