"""Every mistake in a Streamling file, and the exact words: rows of `fixtures/errors`."""

from pathlib import Path
from typing import Any

import pytest
import yaml

from kaflow_engine.plan.planner.project import check_project
from tests.engine.plan.test_streamling import CONFIG

FILE = Path(__file__).parents[2] / "fixtures" / "errors" / "streamling.yaml"
ROWS = yaml.load(FILE.read_text(encoding="utf-8"), yaml.CSafeLoader)


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row["title"])
def test_error(row: dict[str, Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    path = Path("p.yaml")
    path.write_text(row["file"], encoding="utf-8")
    config = CONFIG.model_copy(update={"vars": row.get("settings", {})})
    found = check_project([path], config, {}).mistakes
    assert "\n".join(map(str, found)) == row["error"]
    assert {each.exit_code for each in found} == {10}
