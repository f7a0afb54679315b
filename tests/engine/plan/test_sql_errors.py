"""Every mistake in SQL and names, and the exact words for it: rows of `fixtures/errors/sql`."""

from pathlib import Path
from typing import Any

import pytest
import yaml

from kaflow_engine.errors import ModelError
from kaflow_engine.model.loader import load_pipeline
from kaflow_engine.plan.build import check_pipeline

ROWS = Path(__file__).parents[2] / "fixtures" / "errors" / "sql"


def rows() -> list[Any]:
    """Rows that say `not_yet` show what an error should say, and why it does not."""
    return [
        pytest.param(
            row,
            id=f"{file.stem}: {row['title']}",
            marks=[pytest.mark.xfail(strict=True, reason=row["not_yet"])]
            if "not_yet" in row
            else [],
        )
        for file in sorted(ROWS.glob("*.yaml"))
        for row in yaml.safe_load(file.read_text())
    ]


@pytest.mark.parametrize("row", rows())
def test_error(row: dict[str, Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    columns = {topic: {"columns": types} for topic, types in row.get("topics", {}).items()}
    topics = yaml.safe_dump({"topics": columns}) if columns else ""
    path = Path("p.yaml")
    path.write_text(row["pipeline"] + topics)
    with pytest.raises(ModelError) as raised:
        check_pipeline(load_pipeline(path, {}))
    assert str(raised.value) == row["error"]
    assert raised.value.exit_code == 10
