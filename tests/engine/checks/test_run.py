"""Checks run over rows, in a process of their own."""
# pyright: basic

import math
from decimal import Decimal

import pyarrow as pa
import pytest

from kaflow_engine.checks.run import run_checks
from kaflow_engine.model.checks import Check

pytestmark = pytest.mark.slow

ROWS = pa.table(
    {
        "id": ["a", "b", "b", None],
        "amount": pa.array([Decimal("1.50"), Decimal("2.00"), None, Decimal("-3.00")]),
        "kind": ["x", "y", "z", "x"],
    }
)
CHECKS = [
    ("expect_column_values_to_not_be_null", {"column": "kind"}, True, 0, []),
    ("expect_column_values_to_not_be_null", {"column": "id"}, False, 1, [None]),
    ("expect_column_values_to_be_unique", {"column": "id"}, False, 2, ["b", "b"]),
    (
        "expect_column_values_to_be_in_set",
        {"column": "kind", "value_set": ["x", "y"]},
        False,
        1,
        ["b"],
    ),
    (
        "expect_column_values_to_be_between",
        {"column": "amount", "min_value": 0},
        False,
        1,
        [None],
    ),
    ("expect_table_row_count_to_be_between", {"min_value": 4, "max_value": 4}, True, 0, []),
    ("expect_column_values_to_be_unique", {"column": "nothing"}, False, 0, []),
]


def test_checks():
    checks = [
        Check(name=f"c{n}", expectation=name, arguments=arguments)
        for n, (name, arguments, *_) in enumerate(CHECKS)
    ]
    results = run_checks(checks, ROWS)
    assert [result.check for result in results] == checks
    for result, (*_, passed, failed, sample) in zip(results, CHECKS, strict=True):
        assert (result.passed, result.failed, result.rows) == (passed, failed, 4), result
        assert [_id(row) for row in result.sample] == sample
    assert results[4].words == "amount values must be greater than or equal to 0.0."
    assert results[5].observed == 4
    assert "nothing" in results[6].error


def test_no_checks_and_no_rows():
    assert run_checks([], ROWS) == ()
    check = Check(
        name="c", expectation="expect_column_values_to_not_be_null", arguments={"column": "id"}
    )
    (result,) = run_checks([check], ROWS.slice(0, 0))
    assert (result.passed, result.rows) == (True, 0)


def _id(row):
    found = row["id"]
    return None if isinstance(found, float) and math.isnan(found) else found
