"""Every mistake in a processor, and the exact words for it: rows of `fixtures/errors/lenses`."""

from pathlib import Path
from typing import Any

import pytest
import yaml

from kaflow_engine.errors import Location, ModelError
from kaflow_engine.model.files.tree import from_plain
from kaflow_engine.model.lenses.front_end import load_processor, processor_from_mapping
from kaflow_engine.model.lenses.functions.table import REFUSED
from kaflow_engine.plan.planner.pipeline_plan import check_pipeline
from kaflow_engine.plan.planner.project import check_project

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


SUGGESTIONS = Path(__file__).parents[2] / "fixtures" / "lenses" / "suggestions.yaml"
BOTH = {name: {"columns": {"x": "INTEGER", "y": "VARCHAR"}} for name in "ab"}


@pytest.mark.parametrize(
    "row", yaml.safe_load(SUGGESTIONS.read_text("utf-8")), ids=lambda row: row["title"]
)
def test_suggestion(row: dict[str, Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    path = Path("p.processor.sql")
    path.write_text(row["sql"], encoding="utf-8")
    about = {"name": "p", "strict_nulls": row.get("strict_nulls", "on")}
    read = {name: topic for name, topic in BOTH.items() if f" {name}" in row["sql"]}
    Path("p.processor.yaml").write_text(yaml.safe_dump({**about, "topics": read}))
    (checked,) = check_project([path]).pipelines
    assert checked.mistakes == ()
    assert "\n".join(map(str, checked.notices)) == row["notices"]


@pytest.mark.parametrize("name", sorted(REFUSED))
def test_a_function_that_is_not_there_says_the_way_out(name: str) -> None:
    about = {"name": "p", "sql": f"INSERT INTO o SELECT STREAM {name}(x) AS y FROM a;"}
    with pytest.raises(ModelError) as raised:
        processor_from_mapping(from_plain(about, Location("p")))
    assert raised.value.message == f"the function {name} is not available"
    assert raised.value.hint == REFUSED[name]


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
