"""SQLFlow files on the local executor: rows of `fixtures/sqlflow/cases.yaml` and others."""

import sqlite3
from pathlib import Path
from typing import Any

import pytest
import yaml

from kaflow_engine.errors import KaflowError
from kaflow_engine.model.config import Config
from kaflow_engine.model.configuration.with_brought import with_brought
from kaflow_engine.plan.planner.project import load_checked
from kaflow_engine.testing.local.invoke import invoke

FIXTURES = Path(__file__).parents[3] / "fixtures" / "sqlflow"
CASES = ("cases.yaml", "numbered.yaml")
AT = 1_767_225_600_000


def cases() -> list[Any]:
    files = (yaml.load((FIXTURES / name).read_text(), yaml.CSafeLoader) for name in CASES)
    return [pytest.param(row, id=row["title"]) for rows in files for row in rows]


def text_of(row: dict[str, Any]) -> str:
    if "file" in row:
        return row["file"]
    source = {
        "type": "kafka",
        "kafka": {"brokers": ["localhost:9092"], "group_id": "test", "topics": ["clicks"]},
    }
    if "columns" in row:
        source["columns"] = row["columns"]
    pipeline = {
        "name": "clicks",
        "batch_size": row.get("batch_size", 1),
        "on_error": {"policy": row.get("policy", "RAISE")},
        "source": source,
        "handler": {"type": row.get("type", "handlers.InferredMemBatch"), "sql": row["handler"]},
        "sink": {"type": "console"},
    }
    commands = [{"name": "attach", "sql": row["attach"]}] if "attach" in row else []
    return yaml.safe_dump({"commands": commands, "pipeline": pipeline}, sort_keys=False)


@pytest.mark.parametrize("row", cases())
def test_case(row: dict[str, Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("p.yml").write_text(text_of(row))
    settings: dict[str, Any] = {"sql": {"attach": ["sqlite"], "read": ["data"]}}
    for name, text in row.get("files", {}).items():
        Path("data").mkdir(exist_ok=True)
        Path("data", name).write_text(text)
    if "functions" in row:
        Path("urls.py").write_text(row["functions"])
        settings["functions"] = ["./urls.py"]
    if "database" in row:
        with sqlite3.connect("users.db") as database:
            for statement in row["database"]:
                database.execute(statement)
        database.close()
    config = Config.model_validate(settings)
    (spec,) = load_checked([Path("p.yml")], config, {}).pipelines
    messages = [message.encode() for message in row["messages"]] * row.get("repeat", 1)
    cuts = row.get("cuts", ())

    def invoked():
        return invoke(spec, with_brought(config, [spec]), messages, AT, whole=False, cuts=cuts)

    if "stops" in row:
        with pytest.raises(KaflowError) as raised:
            invoked()
        assert str(raised.value).startswith(row["stops"])
        return
    found = invoked()
    assert list(found.rows) == row["rows"]
    letters = [
        {"offset": each.offset, "phase": each.phase, "value": (each.value or b"").decode()}
        for each in found.letters
    ]
    assert letters == row.get("letters", [])
