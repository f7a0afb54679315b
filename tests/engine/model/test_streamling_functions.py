"""Functions of Streamling as DuckDB computes them: rows of `fixtures/streamling/functions.yaml`."""

from pathlib import Path
from typing import Any

import duckdb
import pytest
import yaml

from kaflow_engine.errors import Location
from kaflow_engine.model.streamling.sql.functions import FUNCTIONS, REFUSED, rewritten
from kaflow_engine.model.streamling.sql.text import SqlText

FILE = Path(__file__).parents[2] / "fixtures" / "streamling" / "functions.yaml"
ROWS = yaml.safe_load(FILE.read_text(encoding="utf-8"))


def at(offset: int) -> Location:
    return Location("p.yaml", 1 + offset)


@pytest.mark.parametrize("row", ROWS["values"], ids=lambda row: row[0])
def test_value(row: Any) -> None:
    sql, mistakes = rewritten(SqlText(f"SELECT {row[0]}"), at)
    assert mistakes == []
    assert duckdb.sql(sql).fetchone() == (row[1],)


def test_every_function_has_a_row() -> None:
    tested = {name for name in FUNCTIONS if any(f"{name}(" in row[0] for row in ROWS["values"])}
    assert tested == set(FUNCTIONS)


@pytest.mark.parametrize("name", sorted(REFUSED))
def test_a_function_that_is_not_there_is_refused_by_name(name: str) -> None:
    _, (mistake,) = rewritten(SqlText(f"SELECT a, {name.upper()}(b)"), at)
    assert str(mistake) == (
        f"p.yaml:11: the function '{name}' is not there\n  hint: {REFUSED[name]}"
    )


def test_lines_stay_and_calls_may_be_inside_of_others() -> None:
    text = (
        "SELECT split_index(\n  json_value(a, '$.b'),\n  ',', 0) AS c,\n  x\nFROM t -- locate('a')"
    )
    sql, mistakes = rewritten(SqlText(text), at)
    assert mistakes == []
    assert sql.count("\n") == text.count("\n")
    assert sql.splitlines()[3:] == ["  x", "FROM t -- locate('a')"]
    found = duckdb.sql(f'WITH t AS (SELECT \'{{"b": "1,2"}}\' AS a, 7 AS x) {sql}').fetchone()
    assert found == ("1", 7)


def test_another_number_of_arguments_is_refused() -> None:
    _, (mistake,) = rewritten(SqlText("SELECT json_value(a)"), at)
    assert str(mistake) == (
        "p.yaml:8: 'json_value' takes 2 arguments here, and has 1\n"
        "  hint: write it as an expression of DuckDB"
    )
