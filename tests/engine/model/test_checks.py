"""Checks are read without great-expectations, and mistakes in them are told."""
# pyright: basic

import subprocess
import sys

import pytest

from kaflow_engine.errors import Location, ModelError
from kaflow_engine.model.checks import (
    checks_of,
    conditions,
    expectations,
    parameters,
    wrong_checks,
)
from kaflow_engine.model.pipelines.loader import load_pipeline, pipeline_from_mapping

GOOD = [
    (
        {"not_null": "a"},
        ("not_null_a", "expect_column_values_to_not_be_null", {"column": "a"}, "error"),
    ),
    (
        {"unique": {"column": "a", "mostly": 0.9}, "name": "once"},
        ("once", "expect_column_values_to_be_unique", {"column": "a", "mostly": 0.9}, "error"),
    ),
    (
        {"accepted_values": {"column": "a", "values": [1, "x"]}, "severity": "warn"},
        (
            "accepted_values_a",
            "expect_column_values_to_be_in_set",
            {"column": "a", "value_set": [1, "x"]},
            "warn",
        ),
    ),
    (
        {"expect_compound_columns_to_be_unique": {"column_list": ["a", "b"]}},
        (
            "expect_compound_columns_to_be_unique_a_b",
            "expect_compound_columns_to_be_unique",
            {"column_list": ["a", "b"]},
            "error",
        ),
    ),
    (
        {"expect_table_row_count_to_be_between": {"min_value": 1}},
        (
            "expect_table_row_count_to_be_between",
            "expect_table_row_count_to_be_between",
            {"min_value": 1},
            "error",
        ),
    ),
]
BAD = [
    ({"not_nul": "a"}, "unknown check 'not_nul'", "did you mean 'not_null'?"),
    (
        {"expect_column_values_to_be_betwen": {"column": "a"}},
        "unknown check 'expect_column_values_to_be_betwen'",
        "did you mean 'expect_column_values_to_be_between'?",
    ),
    (
        {"not_null": "a", "unique": "a"},
        "a check says one thing, and this says 'not_null' and 'unique'",
        "write - unique: id",
    ),
    ({"name": "x"}, "a check says one thing, and this says none", "write - unique: id"),
    (
        {"accepted_values": "a"},
        "'accepted_values' needs 'values'",
        "write - accepted_values: {values: …}",
    ),
    (
        {"not_null": {"colum": "a"}},
        "unknown argument of 'not_null' 'colum'",
        "did you mean 'column'?",
    ),
    (
        {"not_null": {"column": "a", "row_condition": {"type": "pass_through"}}},
        "the row_condition of 'not_null' is no SQL text",
        "write - not_null: {row_condition: amount > 0, …}",
    ),
    (
        {"not_null": {"column": "a", "condition_parser": "pandas"}},
        "unknown argument of 'not_null' 'condition_parser'",
        "did you mean 'row_condition'?",
    ),
    ({"not_null": None}, "'not_null' names no column", "write - not_null: <column>"),
    ({"not_null": "a", "severity": "warm"}, "unknown severity 'warm'", "did you mean 'warn'?"),
    (
        {"not_null": "a", "name": "a b"},
        "'a b' is not a name for a check",
        "use letters, digits and '_'",
    ),
]


def spec(*checks):
    return pipeline_from_mapping(
        {
            "name": "p",
            "query": "SELECT a, b FROM t",
            "output": {"topic": "o"},
            "checks": list(checks),
        },
        Location("p.yaml", 1),
    )


@pytest.mark.parametrize(("entry", "expected"), GOOD)
def test_check(entry, expected):
    found = spec(entry)
    (check,) = checks_of(found, *found.writes)
    assert (check.name, check.expectation, check.arguments, check.severity) == expected
    assert set(check.columns) <= {"a", "b"}


@pytest.mark.parametrize(("entry", "message", "hint"), BAD)
def test_mistake(entry, message, hint):
    found = spec(entry)
    with pytest.raises(ModelError) as caught:
        checks_of(found, *found.writes)
    assert (caught.value.message, caught.value.hint) == (message, hint)


def test_between_checks():
    found = spec({"not_null": "a"}, {"not_null": "a"})
    (twice,) = wrong_checks(found, *found.writes, None)
    assert str(twice.message) == "two checks are called 'not_null_a'"
    found = spec({"not_null": "aa"})
    (unknown,) = wrong_checks(found, *found.writes, ["a", "b"])
    assert str(unknown.message) == "unknown output column 'aa'"


def test_checks_of_two_outputs_may_have_one_name(tmp_path):
    file = tmp_path / "p.yaml"
    file.write_text("""\
name: p
outputs:
  - query: SELECT a FROM t
    topic: x
    checks: [not_null: a]
  - query: SELECT b FROM t
    topic: y
    checks:
      - {not_null: {column: b, row_condition: b > 1}, name: not_null_a}
      - not_null: nowhere
""")
    found = load_pipeline(file, {})
    first, second = found.writes
    assert [check.name for check in checks_of(found, first)] == ["not_null_a"]
    assert [check.name for check in checks_of(found, second)] == ["not_null_a", "not_null_nowhere"]
    assert (conditions(found, first), conditions(found, second)) == ([], [(0, "b > 1")])
    assert wrong_checks(found, first, ["a"]) == []
    (unknown,) = wrong_checks(found, second, ["b"])
    assert (unknown.message, unknown.at) == (
        "unknown output column 'nowhere'",
        Location(str(file), 10),
    )


def test_every_expectation_has_parameters():
    assert len(expectations()) > 40
    for name in expectations():
        needed, known = parameters(name)
        assert set(needed) <= set(known)


def test_great_expectations_is_not_imported():
    code = (
        "import sys; from kaflow_engine.model.checks import expectations; "
        "assert expectations(); assert 'great_expectations' not in sys.modules"
    )
    subprocess.run([sys.executable, "-c", code], check=True)
