"""Every mistake in what is said of sources, and the exact words for it: rows of a fixture."""

from pathlib import Path
from typing import Any

import pytest
import yaml

from kaflow_engine.errors import ModelError
from kaflow_engine.model.config import Config
from kaflow_engine.plan.planner.project import load_checked

ROWS = Path(__file__).parents[2] / "fixtures" / "errors" / "files" / "sources.yaml"


def rows() -> list[Any]:
    found = yaml.load(ROWS.read_text(), yaml.CSafeLoader)
    return [pytest.param(row, id=row["title"]) for row in found]


@pytest.mark.parametrize("row", rows())
def test_error(row: dict[str, Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("p.yaml").write_text(row["file"])
    config = Config.model_validate(row.get("configuration", {}))
    with pytest.raises(ModelError) as raised:
        load_checked([Path("p.yaml")], config, variables={})
    assert str(raised.value) == row["error"]
    assert raised.value.exit_code == 10
