"""What groups keep for calls of aggregate functions: merged results are those of DuckDB."""

# pyright: basic

import random
from dataclasses import replace

import duckdb
import pytest

from kaflow_engine.duck.quoting import identifier
from kaflow_engine.plan.planner.grouping.accumulators import accumulate
from kaflow_engine.sql.shape import CallShape, Expr

pytestmark = pytest.mark.slow

NUMBERS = ["NULL", "0", "1", "-7", "3", "100", "42"]
VALUES = {
    "INTEGER": NUMBERS,
    "UTINYINT": ["NULL", "0", "1", "255"],
    "BIGINT": [*NUMBERS, "9223372036854775807", "-9223372036854775808", "123456789012345678"],
    "UBIGINT": ["NULL", "0", "7", "18446744073709551615"],
    "HUGEINT": [*NUMBERS, "'12345678901234567890123456789'"],
    "UHUGEINT": ["NULL", "0", "7", "99"],
    "DECIMAL(10,2)": ["NULL", "0.05", "-0.05", "-3.33", "99999999.99", "7"],
    "DECIMAL(18,6)": ["NULL", "0.000001", "-5.000003", "123456789012.345678"],
    "DECIMAL(38,10)": ["NULL", "0.1234567890", "-12345678901234567.5", "3"],
    "FLOAT": ["NULL", "0.5", "'-0.0'", "-2.25", "'nan'", "'inf'", "'-inf'"],
    "DOUBLE": ["NULL", "0.5", "'-0.0'", "0.0", "-2.25", "1024", "'nan'", "'inf'", "'-inf'"],
    "BOOLEAN": ["NULL", "TRUE", "FALSE"],
    "VARCHAR": ["NULL", "''", "'a'", "'ä'", "'b\"]'", "'null'"],
    "BLOB": ["NULL", "'\\x00a'", "'b'"],
    "DATE": ["NULL", "'2026-01-01'", "'1969-12-31'"],
    "TIMESTAMP": ["NULL", "'2026-01-01 00:00:00.000001'", "'1969-12-31 12:00:00'"],
    "TIMESTAMP WITH TIME ZONE": ["NULL", "'2026-01-01 00:00:00.5+02'", "'1969-12-31 12:00:00'"],
    "INTEGER[]": ["NULL", "[]", "[1, NULL]", "[1, 2]"],
    "STRUCT(a INTEGER, b VARCHAR)": ["NULL", "{'a': 1, 'b': NULL}", "{'a': NULL, 'b': 'x'}"],
}
WHOLE = ("INTEGER", "UTINYINT", "BIGINT", "UBIGINT", "HUGEINT")
ADDED = (*WHOLE, "UHUGEINT", "DECIMAL(10,2)", "DECIMAL(18,6)", "DECIMAL(38,10)", "FLOAT", "DOUBLE")
EVERY = tuple(VALUES)
FUNCTIONS = {
    **{name: EVERY for name in ("count", "min", "max", "first", "last", "any_value")},
    **{name: EVERY for name in ("arbitrary", "arg_min", "argmax", "max_by")},
    **{name: ADDED for name in ("sum", "avg", "mean", "product")},
    **{name: WHOLE for name in ("bit_and", "bit_or", "bit_xor")},
    **{name: ("BOOLEAN",) for name in ("count_if", "bool_and", "bool_or")},
}
ROUNDED, BINARY = {"avg", "mean", "sum"}, {"FLOAT", "DOUBLE", "UHUGEINT"}


def call(name, function, arguments, passes=None, **more):
    """A call as the author's SQL makes it: arguments are columns of the rows."""
    read = ", ".join(f'"$row.{a}"' for a in arguments)
    sql = f"{function}({read})" if function != "count_star" else "count(*)"
    if passes:
        sql += f' FILTER (WHERE "$row.{passes}")'
    named = [*arguments, *([passes] if passes else [])]
    shape = CallShape(
        name=name,
        function=function,
        arguments=tuple((a, Expr(sql=f't."{a}"', uses=())) for a in named),
        sql=sql,
        plain=True,
        filter=passes,
    )
    return replace(shape, **more)


@pytest.fixture(scope="module")
def con():
    with duckdb.connect(config={"threads": 1}) as connection:
        connection.execute("SET TimeZone = 'UTC'")
        yield connection


def calls_of(function, kind):
    arguments = [(), ("x",), ("x", "y")][
        0 if function == "count_star" else 2 if function[:3] == "arg" or "_by" in function else 1
    ]
    yield call("plain", function, arguments)
    if function != "last":
        yield call("some", function, arguments, "f")


def fill(con, kind, count, seed):
    """Random rows: their place, the cut they come in, a value, a rank and a filter."""
    chance = random.Random(f"{kind} {seed}")
    rows = ", ".join(
        f"({n}, {chance.randint(0, 3)}, {chance.choice(VALUES[kind])}, "
        f"{chance.choice(['NULL', '1', '2', '3'])}, {chance.choice(['NULL', 'TRUE', 'FALSE'])})"
        for n in range(count)
    )
    con.execute(
        'CREATE OR REPLACE TEMP TABLE given(n INTEGER, cut INTEGER, "$row.x" '
        f'{kind}, "$row.y" INTEGER, "$row.f" BOOLEAN)'
    )
    con.execute(f"INSERT INTO given VALUES {rows}")


def same(wanted, got, rounded):
    for one, other in zip(wanted, got, strict=True):
        if rounded and isinstance(one, float) and one == one and abs(one) != float("inf"):
            assert other == pytest.approx(one, rel=1e-12)
        elif one != other or repr(one) != "0.0":  # DuckDB's arg_min forgets the sign of FLOAT zeros
            assert repr(one) == repr(other)  # tells -0.0 from 0.0, and NaN is NaN


@pytest.mark.parametrize("function", ["count_star", *FUNCTIONS])
def test_merged_results_are_those_of_duckdb(con, function):
    for kind in FUNCTIONS.get(function, ("INTEGER",)):
        calls = tuple(calls_of(function, kind))
        for seed in range(3):
            fill(con, kind, 12, seed)
            whole = ", ".join(f"{c.sql} AS {c.name}" for c in calls)
            relation = con.sql(f"SELECT {whole} FROM given")
            kinds = dict(zip(relation.columns, map(str, relation.types), strict=True))
            types = {"x": kind, "y": "INTEGER", "f": "BOOLEAN"}
            accumulators, results = accumulate(calls, types, kinds)
            assert not any(result.keeps for result in results)
            rounded = (kind in BINARY and function in ROUNDED) or function == "product"
            firsts = ", ".join(f"{a.first} AS {identifier(a.column.name)}" for a in accumulators)
            merged = ", ".join(f"{a.merge} AS {identifier(a.column.name)}" for a in accumulators)
            found = ", ".join(f"{r.sql} AS {r.column.name}" for r in results)
            rows = f"SELECT n, cut, {firsts} FROM given"
            # in cuts that follow each other, as batches do
            cuts = f"SELECT min(n) AS n, {merged} FROM ({rows} ORDER BY n) GROUP BY n // 3"
            got = con.sql(f"SELECT {found} FROM (SELECT {merged} FROM ({cuts} ORDER BY n))")
            assert list(map(str, got.types)) == list(kinds.values())
            same(relation.fetchone(), got.fetchone(), rounded)
            over = ", ".join(
                f"{a.merge} OVER (PARTITION BY cut ORDER BY n ROWS UNBOUNDED PRECEDING) "
                f"AS {identifier(a.column.name)}"
                for a in accumulators
            )
            got = con.sql(f"SELECT {found} FROM (SELECT n, {over} FROM ({rows})) ORDER BY n")
            wanted = []
            for n, cut in con.sql("SELECT n, cut FROM given ORDER BY n").fetchall():
                wanted.append(
                    con.sql(f"SELECT {whole} FROM given WHERE n <= {n} AND cut = {cut}").fetchone()
                )
            for one, other in zip(wanted, got.fetchall(), strict=True):
                same(one, other, rounded)


EXACT = ("BOOLEAN", *WHOLE, "DECIMAL(10,2)", "DECIMAL(18,6)", "DECIMAL(38,10)")
SUBTRACTED = {
    **{name: EVERY for name in ("count_star", "count")},
    **{name: ("BOOLEAN",) for name in ("count_if", "bool_and", "bool_or")},
    "bit_xor": WHOLE,
    "sum": EXACT,
    **{name: EXACT[1:] for name in ("avg", "mean")},
}


@pytest.mark.parametrize("function", FUNCTIONS | SUBTRACTED)
def test_what_is_subtracted_leaves_the_results_of_the_rest(con, function):
    for kind in {*FUNCTIONS.get(function, ()), *SUBTRACTED.get(function, ())}:
        calls = tuple(calls_of(function, kind))
        types = {"x": kind, "y": "INTEGER", "f": "BOOLEAN"}
        for seed, gone in enumerate(("cut = 1", "TRUE", '"$row.x" IS NOT NULL', "n % 2 = 0")):
            fill(con, kind, 12, seed)
            whole = ", ".join(f"{c.sql} AS {c.name}" for c in calls)
            relation = con.sql(f"SELECT {whole} FROM given WHERE ({gone}) IS NOT TRUE")
            kinds = dict(zip(relation.columns, map(str, relation.types), strict=True))
            accumulators, results = accumulate(calls, types, kinds, retracts=True)
            subtracted = kind in SUBTRACTED.get(function, ())
            assert {result.keeps for result in results} == {not subtracted}
            if not subtracted:
                assert accumulators == ()
                break
            parts = [
                ", ".join(f"{sql(a)} AS {identifier(a.column.name)}" for a in accumulators)
                for sql in (lambda a: a.first, lambda a: a.taken, lambda a: a.merge)
            ]
            rows = f"SELECT {parts[0]} FROM given UNION ALL "
            rows += f"SELECT {parts[1]} FROM given WHERE {gone}"
            found = ", ".join(f"{r.sql} AS {r.column.name}" for r in results)
            got = con.sql(f"SELECT {found} FROM (SELECT {parts[2]} FROM ({rows}))")
            assert list(map(str, got.types)) == list(kinds.values())
            same(relation.fetchone(), got.fetchone(), rounded=False)


def test_averages_of_large_numbers_are_exact(con):
    for kind, high in {"BIGINT": 10**18, "DECIMAL(18,2)": 10**15, "DECIMAL(38,4)": 10**28}.items():
        chance = random.Random(kind)
        rows = ", ".join(f"({chance.randint(-high, high)}::{kind})" for _ in range(700))
        con.execute(
            f'CREATE OR REPLACE TEMP TABLE given AS SELECT * FROM (VALUES {rows}) t("$row.x")'
        )
        accumulators, results = accumulate((call("a", "avg", ["x"]),), {"x": kind}, {"a": "DOUBLE"})
        firsts = ", ".join(f"{a.first} AS {identifier(a.column.name)}" for a in accumulators)
        merged = ", ".join(f"{a.merge} AS {identifier(a.column.name)}" for a in accumulators)
        groups = "GROUP BY rowid // 7"
        wanted = con.sql(f'SELECT avg("$row.x") FROM given {groups} ORDER BY ALL').fetchall()
        got = con.sql(
            f"SELECT {results[0].sql} AS a FROM (SELECT {merged} FROM "
            f"(SELECT rowid, {firsts} FROM given) {groups}) ORDER BY ALL"
        ).fetchall()
        assert wanted == got


@pytest.mark.parametrize(
    ("shape", "results"),
    [
        (call("r", "median", ["x"]), "DOUBLE"),
        (call("r", "count", ["x"], plain=False), "BIGINT"),
        (call("r", "min", ["x"]), "INTEGER[]"),
        (call("r", "last", ["x"], "f"), "INTEGER"),
        (call("r", "sum", []), "HUGEINT"),
    ],
)
def test_other_calls_keep_rows(shape, results):
    types = {"x": "INTEGER", "f": "BOOLEAN"}
    accumulators, (result,) = accumulate((shape,), types, {"r": results})
    assert (accumulators, result.keeps, result.sql) == ((), True, shape.sql)


def test_equal_accumulators_are_one():
    shapes = (call("a", "sum", ["x"]), call("b", "avg", ["x"]), call("c", "count", ["x"]))
    accumulators, _ = accumulate(
        shapes, {"x": "INTEGER"}, {"a": "HUGEINT", "b": "DOUBLE", "c": "BIGINT"}
    )
    assert len(accumulators) == 2


def test_what_follows_the_order_keeps_rows_in_sessions():
    shapes = (call("a", "first", ["x"]), call("b", "max", ["x"]))
    _, results = accumulate(
        shapes, {"x": "INTEGER"}, {"a": "INTEGER", "b": "INTEGER"}, in_sessions=True
    )
    assert [result.keeps for result in results] == [True, False]
