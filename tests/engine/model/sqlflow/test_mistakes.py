"""Every mistake of a SQLFlow file, and the words for it: rows of `fixtures/errors/sqlflow`."""

from pathlib import Path
from typing import Any

import pytest
import yaml

from kaflow_engine.errors import ModelError
from kaflow_engine.model.config import Config
from kaflow_engine.plan.planner.project import load_checked

FIXTURES = Path(__file__).parents[3] / "fixtures"
ROWS = FIXTURES / "errors" / "sqlflow"
ALLOWED = {"sql": {"attach": ["sqlite", "postgres"]}}


def rows() -> list[Any]:
    found: list[Any] = []
    for path in sorted(ROWS.iterdir()):
        for row in yaml.load(path.read_text(), yaml.CSafeLoader):
            found.append(pytest.param(row, id=f"{path.stem}: {row['title']}"))
    return found


@pytest.mark.parametrize("row", rows())
def test_mistake(row: dict[str, Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    text = (FIXTURES / "sqlflow" / f"{row['base']}.yml").read_text()
    for change in row["change"]:
        assert change["old"] in text
        text = text.replace(change["old"], change["new"], 1)
    Path("p.yml").write_text(text)
    config = Config.model_validate(row.get("configuration", ALLOWED))
    with pytest.raises(ModelError) as raised:
        load_checked([Path("p.yml")], config, row.get("variables", {}))
    assert str(raised.value) == row["error"]
    assert raised.value.exit_code == 10


@pytest.mark.parametrize("base", ["clicks", "window"])
def test_the_files_that_are_changed_are_right(base: str) -> None:
    path = FIXTURES / "sqlflow" / f"{base}.yml"
    assert load_checked([path], Config.model_validate(ALLOWED), {}).pipelines
