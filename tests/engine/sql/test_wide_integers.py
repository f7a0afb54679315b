"""U256 and I256 against Python's integers: ten thousand pairs, in DuckDB as pipelines use it."""

import operator
import random
from collections.abc import Callable
from functools import reduce

import pyarrow as pa
import pytest
import sqlglot

from kaflow_engine.duck.queries import query
from kaflow_engine.duck.wide.integers import BOUNDS
from kaflow_engine.duck.wide.vectors import column_of, is_column, numbers_in, quotient, remainder
from kaflow_engine.sql.syntax import DIALECT
from kaflow_engine.sql.types.as_run import as_run
from kaflow_engine.sql.types.wide_operations import corrected

PAIRS = 10_000
LEAST, MOST = BOUNDS["BIGNUM"]
DICE = random.Random(256)
EDGES = [0, 1, -1, 2**63, -(2**63), 2**64, 2**127 - 1, 2**127, -(2**127), 2**255, LEAST, MOST]


def _number() -> int:
    return (
        DICE.choice(EDGES)
        if DICE.random() < 0.1
        else DICE.randint(LEAST, MOST) >> DICE.choice([0, 1, 100, 128, 190, 250])
    )


A, B = ([_number() for _ in range(PAIRS)] for _ in range(2))
ROWS = pa.table(
    {
        "rn": range(PAIRS),
        "a": column_of(A),
        "b": column_of(B),
        "t": [hex(number) if place % 2 else str(number) for place, number in enumerate(A)],
    }
)


def _calculated(sql: str) -> list[object]:
    """Return what an expression is of each pair, as pipelines calculate it."""
    tree = as_run(sqlglot.parse_one(sql, dialect=DIALECT), None)
    runs = corrected(tree.sql(dialect=DIALECT))
    found = query(f"SELECT {runs} AS x FROM rows ORDER BY rn", ROWS).column("x")
    return list(numbers_in(found)) if is_column(found) else found.to_pylist()


OF_TWO: dict[str, Callable[[int, int], object]] = {
    "a + b": operator.add,
    "a - b": operator.sub,
    "a * b": operator.mul,
    "a / b": quotient,
    "a // b": quotient,
    "a % b": remainder,
    "a < b": operator.lt,
    "a <= b": operator.le,
    "a = b": operator.eq,
    "a <> b": operator.ne,
    "a > b": operator.gt,
    "a >= b": operator.ge,
    "a BETWEEN b AND 170141183460469231731687303715884105727": (lambda a, b: b <= a <= 2**127 - 1),
    "greatest(a, b)": max,
    "least(a, b)": min,
    "CASE WHEN -a < b THEN -a ELSE a - b END": lambda a, b: -a if -a < b else a - b,
    "-a < -b": lambda a, b: -a < -b,
    "-(a - b) >= b": lambda a, b: b - a >= b,
    "coalesce(a / b, a * b)": lambda a, b: a * b if b == 0 else quotient(a, b),
    "coalesce(CASE WHEN a < b THEN a * b END, abs(a) * 2)": (
        lambda a, b: a * b if a < b else abs(a) * 2
    ),
    "CASE WHEN a > b THEN a * b WHEN b % 3 = 0 THEN a / 7 END": (
        lambda a, b: a * b if a > b else quotient(a, 7) if b % 3 == 0 else None
    ),
    "list_transform([a, b], lambda e: e * e)[2]": lambda _, b: b * b,
    "a * 115792089237316195423570985008687907853269984665640564039457584007913129639935": (
        lambda a, _: a * MOST
    ),
    "abs(a)": lambda a, _: abs(a),
    "sign(a)": lambda a, _: (a > 0) - (a < 0),
    "CAST(t AS BIGNUM)": lambda a, _: a,
    "CAST(a * 2 / 2 AS BIGNUM)": lambda a, _: a,
    "TRY_CAST(a * b AS I256)": (lambda a, b: a * b if -(2**255) <= a * b < 2**255 else None),
    "TRY_CAST(a AS U256)": lambda a, _: a if a >= 0 else None,
    "TRY_CAST(t AS I256)": lambda a, _: a if a < 2**255 else None,
    "CAST(a AS VARCHAR)": lambda a, _: str(a),
    "CAST(a AS DOUBLE)": lambda a, _: float(a),
    "TRY_CAST(a AS BIGINT)": lambda a, _: a if -(2**63) <= a < 2**63 else None,
    "CAST(TRY_CAST(b AS HUGEINT) AS BIGNUM)": (lambda _, b: b if -(2**127) <= b < 2**127 else None),
    "CAST(TRY_CAST(b AS DECIMAL(38, 0)) AS BIGNUM)": lambda _, b: b if abs(b) < 10**38 else None,
    "TRY_CAST(CAST(a AS DOUBLE) AS BIGNUM)": (
        lambda a, _: int(float(a)) if LEAST <= int(float(a)) <= MOST else None
    ),
}


@pytest.mark.parametrize("sql", [*OF_TWO])
def test_pairs_are_calculated_as_python_does(sql: str) -> None:
    assert _calculated(sql) == [OF_TWO[sql](a, b) for a, b in zip(A, B, strict=True)]


def test_rows_sort_group_and_add_up_as_numbers() -> None:
    in_order = query("SELECT a FROM rows ORDER BY a", ROWS).column("a")
    assert numbers_in(in_order) == sorted(A)
    one = query(
        "SELECT sum(a) AS s, min(b) AS lo, max(b) AS hi, count(DISTINCT a) AS n, "
        "list(a ORDER BY b, rn)[1:3] AS l FROM rows",
        ROWS,
    )
    assert [numbers_in(one.column(name))[0] for name in ("s", "lo", "hi")] == [
        sum(A),
        min(B),
        max(B),
    ]
    assert one["n"].to_pylist() == [len(set(A))]
    grouped = query("SELECT a % 7 AS k, sum(b) AS s FROM rows GROUP BY 1 ORDER BY 1", ROWS)
    keys = sorted({remainder(a, 7) or 0 for a in A})
    assert numbers_in(grouped["k"]) == keys
    assert numbers_in(grouped["s"]) == [
        reduce(operator.add, (b for a, b in zip(A, B, strict=True) if remainder(a, 7) == key))
        for key in keys
    ]
    joined = query("SELECT count(*) AS n FROM rows x JOIN rows y ON x.a = y.a", ROWS)
    assert joined["n"].to_pylist() == [
        sum(A.count(number) for number in set(A) for _ in range(A.count(number)))
    ]
