"""Functions of Streamling as DuckDB computes them: rows of `fixtures/streamling/functions.yaml`."""

from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa
import pytest
import sqlglot
import yaml

from kaflow_engine.duck.queries import query
from kaflow_engine.errors import Location
from kaflow_engine.model.streamling.sql.functions import FUNCTIONS, rewritten
from kaflow_engine.model.streamling.sql.text import SqlText
from kaflow_engine.sql.syntax import DIALECT
from kaflow_engine.sql.types.as_run import as_run
from kaflow_engine.sql.types.wide_operations import corrected

FILE = Path(__file__).parents[2] / "fixtures" / "streamling" / "functions.yaml"
ROWS = yaml.safe_load(FILE.read_text(encoding="utf-8"))


def at(offset: int) -> Location:
    return Location("p.yaml", 1 + offset)


@pytest.mark.parametrize("row", ROWS["values"], ids=lambda row: row[0])
def test_value(row: Any) -> None:
    sql, mistakes = rewritten(SqlText(f"SELECT {row[0]}"), at)
    assert mistakes == []
    assert duckdb.sql(sql).fetchone() == (row[1],)


ROW = pa.table({"rn": [0]})


def calculated(expression: str) -> str:
    """Return the text of a value, as pipelines calculate it."""
    sql, mistakes = rewritten(SqlText(f"CAST({expression} AS VARCHAR)"), at)
    assert mistakes == []
    runs = as_run(sqlglot.parse_one(sql, dialect=DIALECT), None)
    asked = corrected(runs.sql(dialect=DIALECT))
    return query(f"SELECT {asked} AS x FROM rows", ROW)["x"][0].as_py()


@pytest.mark.parametrize("row", ROWS["called"], ids=lambda row: row[0])
def test_a_function_of_the_engine(row: Any) -> None:
    assert calculated(row[0]) == row[1]


@pytest.mark.parametrize("row", ROWS["wide"], ids=lambda row: row[0])
def test_a_number_of_256_bits(row: Any) -> None:
    assert calculated(row[0]) == row[1]


@pytest.mark.parametrize("expression", ROWS["beyond"])
def test_a_number_beyond_its_type_is_an_error(expression: str) -> None:
    with pytest.raises(duckdb.Error, match="256"):
        calculated(expression)


def test_every_function_has_a_row() -> None:
    rows = [*ROWS["values"], *ROWS["called"], *ROWS["wide"]]
    tested = {name for name in FUNCTIONS if any(f"{name}(" in row[0] for row in rows)}
    assert tested == set(FUNCTIONS)


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


@pytest.mark.parametrize("row", ROWS["fails"], ids=lambda row: row[0])
def test_what_is_an_error_where_the_file_says_so(row: Any) -> None:
    sql, mistakes = rewritten(SqlText(f"SELECT {row[0]} FROM rows"), at)
    assert mistakes == []
    with pytest.raises(duckdb.Error) as caught:
        query(sql, pa.table({"x": ["{}"], "y": ["{"]}))
    assert row[1] in str(caught.value)


@pytest.mark.parametrize("row", ROWS["refused"], ids=lambda row: row[0])
def test_other_arguments_are_refused(row: Any) -> None:
    _, (mistake,) = rewritten(SqlText(f"SELECT {row[0]}"), at)
    assert str(mistake) == f"p.yaml:8: {row[1]}\n  hint: {row[2]}"
