"""Each function of a processor gives what the rows of `fixtures/lenses/functions.yaml` say."""

from pathlib import Path
from typing import Any

import duckdb
import pytest
import yaml

from kaflow_engine.errors import Location
from kaflow_engine.model.files.tree import Scalar, find, from_plain
from kaflow_engine.model.lenses.front_end import processor_from_mapping
from kaflow_engine.model.lenses.functions.patterns import strftime_pattern
from kaflow_engine.model.lenses.functions.table import FUNCTIONS, REFUSED
from kaflow_engine.model.lenses.grammar.source_text import SourceText
from kaflow_engine.model.lenses.lowering.program import lower_processor
from kaflow_engine.plan.planner.pipeline_plan import check_pipeline

ROWS = yaml.safe_load(
    (Path(__file__).parents[3] / "fixtures" / "lenses" / "functions.yaml").read_text("utf-8")
)
RECORD = """
    SELECT ' ab Cd' AS "text", -3.7::DOUBLE AS number, 7 AS whole, [1, 2, 3] AS list,
    [[1], [2, 3]] AS lists, NULL::INTEGER AS nothing, TIMESTAMP '2026-03-09 07:08:09' AS day,
    '{"x": [4, 5]}' AS json, 'k' AS _key, MAP {'a': encode('1')} AS _headers
"""


def _is_aggregate(call: str) -> bool:
    return any(f.group == "aggregate" and call.startswith(f"{n}(") for n, f in FUNCTIONS.items())


def value_of(call: str) -> Any:
    text = f"INSERT INTO o SELECT STREAM {call} AS x FROM t"
    source = SourceText(text=text + " GROUP BY _key" * _is_aggregate(call), at=Location("p", 1))
    lowered = lower_processor(source, {})
    assert not lowered.mistakes, lowered.mistakes
    query = find(lowered.keys, ("outputs", 0, "query"))
    assert isinstance(query, Scalar)
    assert query.text is not None
    return duckdb.sql(f"WITH t AS ({RECORD}) {query.text}").fetchall()[0][0]


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row["call"])
def test_value(row: dict[str, Any]) -> None:
    expected, found = row["is"], value_of(row["call"])
    if isinstance(expected, float):
        assert float(found) == pytest.approx(expected)
    else:
        assert found == expected


def test_each_function_has_a_row() -> None:
    calls = " ".join(row["call"] for row in ROWS)
    assert [name for name in FUNCTIONS if f"{name}(" not in calls] == []
    assert set(FUNCTIONS) & set(REFUSED) == set()


@pytest.mark.parametrize("grouped", [True, False])
def test_pipelines_may_call_each_function(grouped: bool) -> None:
    calls = [row["call"] for row in ROWS if _is_aggregate(row["call"]) == grouped]
    items = ", ".join(f"{call} AS c{place}" for place, call in enumerate(calls))
    columns = {
        **{"text": "VARCHAR", "number": "DOUBLE", "whole": "INTEGER", "list": "INTEGER[]"},
        **{"lists": "INTEGER[][]", "nothing": "INTEGER", "day": "TIMESTAMP", "json": "VARCHAR"},
    }
    sql = f"INSERT INTO o SELECT STREAM {items} FROM t" + " GROUP BY _key" * grouped
    about = {"name": "p", "topics": {"t": {"columns": columns}}, "sql": sql}
    check_pipeline(processor_from_mapping(from_plain(about, Location("p"))))


def test_null_where_none_may_be_is_an_error() -> None:
    with pytest.raises(duckdb.InvalidInputException, match="AS_NON_NULLABLE of NULL"):
        value_of("AS_NON_NULLABLE(nothing)")


@pytest.mark.parametrize(
    ("java", "duck"),
    [
        ("yyyy-MM-dd'T'HH:mm:ss.SSS", "%Y-%m-%dT%H:%M:%S.%g"),
        ("HH 'o''clock'", "%H o'clock"),
        ("hh ''a 100%", "%I '%p 100%%"),
        ("yyyyy", None),
    ],
)
def test_patterns_of_times(java: str, duck: str | None) -> None:
    assert strftime_pattern(java) == duck
