"""Checks run over rows, in a process of their own."""
# pyright: basic

import json
import math
import os
import subprocess
import sys
from decimal import Decimal
from pathlib import Path

import pyarrow as pa
import pytest

from kaflow_engine.checks.run import run_checks
from kaflow_engine.model.checks import Check, expectations, parameters

ROOT = Path(__file__).parents[3]
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
NULL = "expect_column_values_to_be_null"
CONDITIONS = [
    ("amount > 0", "expect_column_values_to_be_unique", True, 2, None),
    ("amount > 0 AND kind = 'x' -- and so on", NULL, False, 1, None),
    ("false", NULL, True, 0, None),
    ("kind < 'z'", NULL, False, 3, None),
    ("@pd.io.common.os.system('x') == 0", NULL, False, 0, "cannot apply the row_condition"),
    ("amount > 0) OR (true", NULL, False, 4, None),  # the loader refuses it; rows are rows
    ("(SELECT true FROM read_text('/etc/hostname'))", NULL, False, 0, "cannot apply the row"),
    ("kind::BIGINT > 0", NULL, False, 0, "cannot apply the row_condition"),
]


@pytest.mark.slow
def test_a_condition_is_sql_and_says_which_rows_are_looked_at():
    checks = [
        Check(
            name=f"c{n}",
            expectation=expectation,
            arguments={"column": "id", "row_condition": condition},
        )
        for n, (condition, expectation, *_) in enumerate(CONDITIONS)
    ]
    results = run_checks(checks, ROWS)
    assert [result.check for result in results] == checks
    for result, (_, _, passed, rows, error) in zip(results, CONDITIONS, strict=True):
        assert (result.passed, result.rows) == (passed, rows), result
        assert (result.error or "").startswith(error) if error else result.error is None


@pytest.mark.slow
def test_no_argument_of_any_expectation_runs_anything(tmp_path):
    command = [sys.executable, "-m", "tests.engine.checks.walk_here", str(tmp_path)]
    paths = os.pathsep.join([str(ROOT), *sys.path])
    asked = {"KAFLOW_EXPECTATIONS": os.environ.get("KAFLOW_EXPECTATIONS", "")}
    done = subprocess.run(
        command,
        env={"PYTHONPATH": paths, "HOME": str(tmp_path), "TQDM_DISABLE": "1", **asked},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-2000:]
    tried, ran = json.loads(done.stdout)
    assert ran == []
    known = {f"{name}.{each}" for name in expectations() for each in parameters(name)[1]}
    assert known <= set(tried)


def test_the_process_gets_rows_by_stdin_and_no_variable_of_ours(tmp_path, monkeypatch):
    answer = {"passed": True, "failed": 0, "observed": 1, "sample": [], "words": "w", "error": None}
    python = tmp_path / "python"
    python.write_text(
        f"#!/bin/sh\nenv > {tmp_path}/env\necho $@ > {tmp_path}/arguments\n"
        f"cat > {tmp_path}/stdin\necho '[{json.dumps(answer)}]'\n"
    )
    python.chmod(0o755)
    monkeypatch.setattr(sys, "executable", str(python))
    monkeypatch.setenv("KAFKA_PASSWORD", "Sasl-9f31")
    (result,) = run_checks([Check(name="c", expectation=NULL, arguments={"column": "id"})], ROWS)
    assert (result.passed, result.observed, result.words, result.rows) == (True, 1, "w", 4)
    names = {line.partition("=")[0] for line in (tmp_path / "env").read_text().splitlines()}
    ours = {"HOME", "GX_ANALYTICS_ENABLED", "TQDM_DISABLE", "PYTHONUTF8"}
    of_python = {"PYTHONHOME", "PYTHONPATH", "LD_LIBRARY_PATH"}
    assert names - {"PWD", "OLDPWD", "SHLVL", "_"} <= ours | of_python  # a shell adds its own
    assert (tmp_path / "arguments").read_text() == "-m kaflow_engine.checks.child\n"
    assert (tmp_path / "stdin").stat().st_size > ROWS.nbytes


@pytest.mark.slow
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


@pytest.mark.slow
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
