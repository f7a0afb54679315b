"""Types of expressions, bound together or one by one."""

import pytest

from kaflow_engine.duck import binding
from kaflow_engine.errors import ModelError, SqlError
from kaflow_engine.model.columns import Column
from kaflow_engine.sql.branches import read_branches
from kaflow_engine.sql.parse import parse_query
from kaflow_engine.sql.shape import Expr, QueryShape
from kaflow_engine.sql.types.bind import Binder, expressions

COLUMNS = (
    Column("id", "VARCHAR"),
    Column("n", "INTEGER"),
    Column("d", "DECIMAL(10,2)"),
    Column("t", "TIMESTAMP"),
    Column("s", "STRUCT(x BIGINT)"),
    Column("l", "BIGINT[]"),
)


def read(select: str) -> QueryShape:
    query = parse_query(f"SELECT {select} FROM a")
    (shape,) = read_branches(query, {"a": COLUMNS}.get, None, {})
    return shape


def types(select: str) -> list[str]:
    shape = read(select)
    binder = Binder({"a": COLUMNS}, None, expressions(shape))
    return [binder.type_of(output.expr) for output in shape.outputs]


def test_types() -> None:
    assert types("id, n + 1 AS a, d * 2 AS b, s.x, t > now() AS c, [n] AS e, NULL AS f") == [
        "VARCHAR",
        "INTEGER",
        "DECIMAL(18,2)",
        "BIGINT",
        "BOOLEAN",
        "INTEGER[]",
        "INTEGER",
    ]


@pytest.mark.parametrize(
    "condition",
    ["n = '1'", "t > '2026-01-01'", "id = 'x'", "d < '1.25'", "TRY(n = 'x') IS NULL", "'a' <> 'b'"],
)
def test_texts_that_can_be_cast(condition: str) -> None:
    assert types(f"{condition} AS x") == ["BOOLEAN"]


@pytest.mark.parametrize(
    "expression", ["product(n)", "geomean(n)", "list_transform(l, x -> product(x))"]
)
def test_what_is_no_value_of_a_row(expression: str) -> None:
    with pytest.raises(SqlError):
        types(f"{expression} AS x")


def test_a_mistake_does_not_hide_the_others() -> None:
    good, bad = Expr(sql='"a.n" + 1', uses=(("a", "n"),)), Expr(sql="nosuch(1)", uses=())
    binder = Binder({"a": COLUMNS}, None, [good, bad])
    assert binder.type_of(good) == "INTEGER"
    with pytest.raises(ModelError, match="unknown function 'nosuch'"):
        binder.type_of(bad)


def test_keys() -> None:
    binder = Binder({"a": COLUMNS}, None)
    number, decimal, text = (
        Expr(sql=f'"a.{name}"', uses=(("a", name),)) for name in ("n", "d", "id")
    )
    assert binder.key_type(number, number) == "INTEGER"
    assert binder.key_type(number, decimal) == "DECIMAL(12,2)"
    assert binder.key_type(text, number) == "INTEGER"


def test_nothing_of_the_machine_can_be_reached() -> None:
    with pytest.raises(binding.Error, match="secret"):
        binding.bind("SELECT * FROM secret")
    with pytest.raises(binding.Error):
        binding.bind("SELECT * FROM 'a.csv'")


def test_a_parsed_query_is_not_changed_by_reading_it() -> None:
    derived = "(SELECT * FROM a WHERE n > 1) x"
    sql = f"SELECT x.* EXCLUDE (n), x.s.x AS y FROM {derived} RIGHT JOIN b USING (id)"
    sql = f"{sql} UNION ALL SELECT id, d, t, s, l, n + 1 FROM a"
    before = parse_query(sql).sql()
    schemas = {"a": COLUMNS, "b": (Column("id", "VARCHAR"),)}
    first, again = (read_branches(parse_query(sql), schemas.get, None, {}) for _ in range(2))
    assert first == again
    assert parse_query(sql) is parse_query(sql)
    assert parse_query(sql).sql() == before
