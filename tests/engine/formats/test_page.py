"""The page about formats: each has its section, and its examples are right."""

from pathlib import Path

import pytest

from kaflow_engine.model.formats import FORMATS
from kaflow_engine.model.pipelines.loader import load_pipeline
from kaflow_engine.plan.planner.pipeline_plan import check_pipeline
from tests.page import DOCS, blocks


@pytest.mark.parametrize("block", blocks("yaml", "formats.md"))
def test_an_example_is_a_pipeline(block: str, tmp_path: Path) -> None:
    path = tmp_path / "p.yaml"
    path.write_text(block if block.startswith("name:") else f"name: p\n{block}")
    check_pipeline(load_pipeline(path, {}))


def test_the_page_names_every_format() -> None:
    text = DOCS.joinpath("formats.md").read_text()
    assert [name for name in FORMATS if f"| `{name}`" not in text] == []
