"""Every mistake in a processor, and the exact words for it: rows of `fixtures/errors/lenses`."""

from pathlib import Path
from typing import Any

import pytest
import yaml

from kaflow_engine.errors import Location, ModelError
from kaflow_engine.model.files.tree import from_plain
from kaflow_engine.model.lenses.front_end import load_processor, processor_from_mapping
from kaflow_engine.plan.planner.pipeline_plan import check_pipeline

ROWS = Path(__file__).parents[2] / "fixtures" / "errors" / "lenses"


def rows() -> list[Any]:
    return [
        pytest.param(row, id=f"{file.stem}: {row['title']}")
        for file in sorted(ROWS.glob("*.yaml"))
        for row in yaml.load(file.read_text(encoding="utf-8"), yaml.CSafeLoader)
    ]


@pytest.mark.parametrize("row", rows())
def test_error(row: dict[str, Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    path = Path("p.processor.sql")
    path.write_text(row["sql"], encoding="utf-8")
    if "topics" in row:
        said = {key: row[key] for key in ("strict_nulls", "topics") if key in row}
        Path("p.processor.yaml").write_text(yaml.safe_dump({"name": "p", **said}), encoding="utf-8")
    with pytest.raises(ModelError) as raised:
        check_pipeline(load_processor(path, {}))
    assert str(raised.value) == row["error"]
    assert raised.value.exit_code == 10


@pytest.mark.parametrize(("strict", "notices"), [("warn", 1), ("off", 0)])
def test_nulls_that_are_let_through(strict: str, notices: int) -> None:
    topics = {"t": {"columns": {"x": "INTEGER"}, "nullable": ["x"]}}
    sql = "INSERT INTO o SELECT STREAM x + 1 AS y FROM t;"
    about = {"name": "p", "strict_nulls": strict, "topics": topics, "sql": sql}
    spec = processor_from_mapping(from_plain(about, Location("p")))
    assert len(check_pipeline(spec)) == notices


@pytest.mark.parametrize(
    "sql",
    [
        "INSERT INTO o SELECT STREAM x + 1 AS y FROM a LEFT JOIN c ON a._key = c._key;",
        "WITH w AS (SELECT STREAM * FROM a LEFT JOIN c ON a._key = c._key);"
        "INSERT INTO o SELECT STREAM x + 1 AS y FROM w;",
    ],
)
def test_a_field_that_is_declared_is_none_of_an_undeclared_topic(sql: str) -> None:
    topics = {"a": {"columns": {"x": "INTEGER"}}}
    about = {"name": "p", "topics": topics, "sql": f"WITH c AS (SELECT TABLE * FROM b);{sql}"}
    assert processor_from_mapping(from_plain(about, Location("p"))).nulls.operands == ()
