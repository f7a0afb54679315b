"""Conditions of checks, over columns with and without wide integers."""

import os
import subprocess
import sys

import pytest

from kaflow_engine.model.columns import Column
from kaflow_engine.sql.types.conditions import check_condition

PLAIN = [Column("amount", "INTEGER"), Column("kind", "VARCHAR")]
WIDE = [*PLAIN, Column("wide", "U256")]
OF_PLAIN = ("-amount < 0", "-AMOUNT < 0", "CAST(kind AS INTEGER) > -amount")
OF_WIDE = ("-wide < 0", "-WIDE < -amount", "coalesce(wide * 2, 0) > 1")


@pytest.mark.parametrize(
    ("condition", "columns"),
    [
        *((condition, PLAIN) for condition in OF_PLAIN),
        *((condition, WIDE) for condition in (*OF_PLAIN, *OF_WIDE)),
    ],
)
def test_a_minus_may_stand_before_any_number(condition: str, columns: list[Column]) -> None:
    check_condition(condition, columns, None)


@pytest.mark.parametrize("condition", ["-amount < 0", "-AMOUNT < 0"])
def test_it_may_in_a_process_that_has_seen_no_wide_integers(condition: str) -> None:
    code = (
        "from kaflow_engine.model.columns import Column\n"
        "from kaflow_engine.sql.types.conditions import check_condition\n"
        f"check_condition({condition!r}, [Column('amount', 'INTEGER')], None)\n"
    )
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    done = subprocess.run([sys.executable, "-c", code], env=environment, capture_output=True)
    assert done.returncode == 0, done.stderr.decode()
