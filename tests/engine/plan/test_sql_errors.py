"""Every mistake in SQL and names, and the exact words for it: rows of `fixtures/errors/sql`."""

from pathlib import Path
from typing import Any

import pytest
import yaml

from kaflow_engine.errors import ModelError
from kaflow_engine.model.config import Config
from kaflow_engine.model.pipelines.loader import load_pipeline
from kaflow_engine.plan.planner.pipeline_plan import check_pipeline

ROWS = Path(__file__).parents[2] / "fixtures" / "errors" / "sql"


def rows() -> list[Any]:
    return [
        pytest.param(row, id=f"{file.stem}: {row['title']}")
        for file in sorted(ROWS.glob("*.yaml"))
        for row in yaml.load(file.read_text(), yaml.CSafeLoader)
    ]


@pytest.mark.parametrize("row", rows())
def test_error(row: dict[str, Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    columns = {topic: {"columns": types} for topic, types in row.get("topics", {}).items()}
    topics = yaml.safe_dump({"topics": columns}) if columns else ""
    path = Path("p.yaml")
    path.write_text(row["pipeline"] + topics)
    with pytest.raises(ModelError) as raised:
        check_pipeline(load_pipeline(path, {}), Config.model_validate(row.get("config", {})))
    assert str(raised.value) == row["error"]
    assert raised.value.exit_code == 10
