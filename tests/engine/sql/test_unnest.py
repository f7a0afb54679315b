"""Where `unnest` may stand, and the lists, conditions and columns that a query then has."""

import pytest

from kaflow_engine.model.columns import Column
from kaflow_engine.sql.branches import read_branches
from kaflow_engine.sql.parse import parse_query
from kaflow_engine.sql.shape import QueryShape
from kaflow_engine.sql.types.bind import with_elements
from kaflow_engine.sql.types.origins import columns_behind

COLUMNS = (
    Column("id", "VARCHAR"),
    Column("items", "STRUCT(name VARCHAR, qty INTEGER)[]"),
    Column("xs", "INTEGER[]"),
    Column("ys", "INTEGER[][]"),
    Column("three", "DOUBLE[3]"),
)


def read(sql: str) -> QueryShape:
    (shape,) = read_branches(parse_query(sql), lambda _: COLUMNS, None, {})
    return shape


def lists(shape: QueryShape) -> list[dict[str, str]]:
    return [
        {f"{unnest.alias}.{name}": of.sql.replace('"', "") for name, of in unnest.lists}
        for unnest in shape.unnests
    ]


ITEMS = {"u.item": "t.items"}
NAME = "STRUCT_EXTRACT(u.item, 'name')"

ROWS = [
    (
        "SELECT id, unnest(xs) AS x FROM t",
        [{"unnest.xs": "t.xs"}],
        {"id": "t.id", "x": "unnest.xs"},
    ),
    (
        "SELECT unnest(xs) AS a, unnest(items).name AS b, unnest(xs) + 1 AS c FROM t",
        [{"unnest.xs": "t.xs", "unnest.items": "t.items"}],
        {"a": "unnest.xs", "b": "STRUCT_EXTRACT(unnest.items, 'name')", "c": "unnest.xs + 1"},
    ),
    ("SELECT item.name FROM t CROSS JOIN unnest(t.items) AS u(item)", [ITEMS], {"name": NAME}),
    ("SELECT u.item.name FROM t, unnest(items) AS u(item)", [ITEMS], {"name": NAME}),
    ("SELECT item.name FROM t JOIN unnest(items) AS u(item) ON true", [ITEMS], {"name": NAME}),
    ("SELECT item.name FROM t, LATERAL unnest(items) AS u(item)", [ITEMS], {"name": NAME}),
    ("SELECT u.unnest AS x FROM t, unnest(xs) u", [{"u.unnest": "t.xs"}], {"x": "u.unnest"}),
    ("SELECT unnest AS x FROM t, unnest(xs)", [{"unnest.unnest": "t.xs"}], {"x": "unnest.unnest"}),
    (
        "SELECT u.* FROM t, LATERAL (SELECT unnest(t.xs) AS x, t.id) u",
        [{"unnest.xs": "t.xs"}],
        {"x": "unnest.xs", "id": "t.id"},
    ),
    (
        "SELECT u.* FROM t CROSS JOIN LATERAL (SELECT unnest(xs), id) u(x)",
        [{"unnest.xs": "t.xs"}],
        {"x": "unnest.xs", "id": "t.id"},
    ),
    (
        "SELECT v.* FROM t, (SELECT * FROM unnest(t.items) AS u(item), unnest(xs) AS w(x)) v",
        [ITEMS, {"w.x": "t.xs"}],
        {"item": "u.item", "x": "w.x"},
    ),
    (
        "SELECT y FROM (SELECT unnest(x) AS y FROM (SELECT unnest(ys) AS x FROM t) a) b",
        [{"unnest.ys": "t.ys"}, {"unnest_2.x": "unnest.ys"}],
        {"y": "unnest_2.x"},
    ),
    (
        "WITH e AS (SELECT id, unnest(xs) AS x FROM t) SELECT id FROM e",
        [{"unnest.xs": "t.xs"}],
        {"id": "t.id"},
    ),
    (
        "SELECT x FROM t LEFT JOIN b ON t.id = b.id CROSS JOIN unnest(b.xs) AS u(x)",
        [{"u.x": "b.xs"}],
        {"x": "u.x"},
    ),
    (
        "SELECT b.id, u.* FROM t RIGHT JOIN b ON t.id = b.id CROSS JOIN unnest(b.xs) AS u(x)",
        [{"u.x": "b.xs"}],
        {"id": "b.id", "x": "u.x"},
    ),
]


@pytest.mark.parametrize(("sql", "unnested", "columns"), ROWS)
def test_shape(sql: str, unnested: list[dict[str, str]], columns: dict[str, str]) -> None:
    shape = read(sql)
    assert lists(shape) == unnested
    found = {output.name: output.expr.sql.replace('"', "") for output in shape.outputs}
    assert found == columns


def test_conditions_of_all_levels_are_conditions_of_the_rows() -> None:
    shape = read(
        "SELECT * FROM (SELECT id, unnest(xs) AS x FROM t WHERE id > 'a') e, "
        "LATERAL (SELECT y FROM unnest([x, 1]) AS u(y) WHERE y > 2) WHERE x > 3"
    )
    assert [part.sql.replace('"', "") for part in shape.where] == [
        "t.id > 'a'",
        "u.y > 2",
        "unnest.xs > 3",
    ]


def test_an_element_comes_from_the_columns_of_its_list() -> None:
    shape = read(
        "SELECT v.y + u.x AS a, v.y AS b, u.x || t.id AS c "
        "FROM t, unnest(xs) AS u(x), unnest([u.x, len(ys)]) AS v(y)"
    )
    reads = [sorted(name for _, name in columns_behind(shape, o.expr)) for o in shape.outputs]
    assert reads == [["xs", "ys"], ["xs", "ys"], ["id", "xs"]]


def test_elements_have_the_type_of_their_list() -> None:
    shape = read(
        "SELECT a, b, c, d FROM t, unnest(items) AS u(a), unnest(ys) AS v(b), unnest(b) AS w(c), "
        "unnest(three) AS x(d)"
    )
    found = with_elements({"t": COLUMNS}, shape, None)
    assert {column.name: column.type for alias in "uvwx" for column in found[alias]} == {
        "_place": "BIGINT",
        "a": 'STRUCT("name" VARCHAR, qty INTEGER)',
        "b": "INTEGER[]",
        "c": "INTEGER",
        "d": "DOUBLE",
    }
