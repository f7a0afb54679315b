"""Types of the columns of groups, what they are called, and which columns of topics they read."""

from collections.abc import Sequence

import pytest

from kaflow_engine.errors import ModelError
from kaflow_engine.model.columns import Column
from kaflow_engine.sql.branches import read_branches
from kaflow_engine.sql.parse import parse_query
from kaflow_engine.sql.shape import QueryShape
from kaflow_engine.sql.types.bind import Binder, expressions, used_columns, with_elements
from kaflow_engine.sql.types.groups import group_columns, rows_of_groups
from kaflow_engine.sql.types.origins import columns_behind, lists_behind

COLUMNS = (
    Column("id", "VARCHAR"),
    Column("v", "INTEGER"),
    Column("d", "DECIMAL(10,2)"),
    Column("x", "DOUBLE"),
    Column("xs", "INTEGER[]"),
)


def read(sql: str) -> QueryShape:
    (shape,) = read_branches(parse_query(sql), lambda _: COLUMNS, None, {})
    return shape


def types(columns: Sequence[Column]) -> dict[str, str]:
    return {column.name: column.type for column in columns}


def test_calls_have_the_types_that_duckdb_gives_them() -> None:
    shape = read(
        "SELECT v % 2 AS odd, window_end, count(*) AS n, sum(v) AS s, sum(d) AS e, avg(v) AS a, "
        "list(v ORDER BY x) AS l, median(x) FILTER (WHERE v > 0) AS m, arg_max(id, v) AS b "
        "FROM t GROUP BY odd, tumble(INTERVAL 1 MINUTE)"
    )
    (found,) = group_columns({"t": COLUMNS}, shape, None)
    assert types(found.keys) == {"k0": "INTEGER"}
    assert types(found.arguments) == {
        "a0": "INTEGER",
        "a1": "DECIMAL(10,2)",
        "a2": "DOUBLE",
        "a3": "BOOLEAN",
        "a4": "VARCHAR",
    }
    assert types(found.results) == {
        "c0": "BIGINT",
        "c1": "HUGEINT",
        "c2": "DECIMAL(38,2)",
        "c3": "DOUBLE",
        "c4": "INTEGER[]",
        "c5": "DOUBLE",
        "c6": "VARCHAR",
    }
    assert types(found.window) == {"window_start": "TIMESTAMP", "window_end": "TIMESTAMP"}
    assert found.row == (*found.keys, *found.results, *found.window)


def test_outputs_and_conditions_bind_over_sources_lists_and_groups() -> None:
    shape = read(
        "SELECT k, avg(n) AS a, max(l) AS m, max(s) AS e FROM (SELECT u.y AS k, count(*) AS n, "
        "list(d) AS l, window_start AS s FROM t, unnest(xs) AS u(y) WHERE x > 0 "
        "GROUP BY y, tumble(INTERVAL 1 MINUTE) HAVING count(*) > 1) GROUP BY k HAVING a > 2"
    )
    rows = with_elements({"t": COLUMNS}, shape, None)
    groups = rows_of_groups(shape, group_columns(rows, shape, None))
    binder = Binder({**rows, **groups}, None, expressions(shape))
    assert {output.name: binder.type_of(output.expr) for output in shape.outputs} == {
        "k": "INTEGER",
        "a": "DOUBLE",
        "m": "DECIMAL(10,2)[]",
        "e": "TIMESTAMP",
    }
    for part in (*shape.where, *(part for group in shape.groups for part in group.where)):
        binder.check_condition(part)


def test_columns_of_topics_are_read_through_groups() -> None:
    shape = read(
        "SELECT k, sum(n) / max(m) AS q, window_start AS w FROM (SELECT id || v AS k, "
        "count(*) FILTER (WHERE x > 0) AS n, max(y) AS m FROM t, unnest(xs) AS u(y) GROUP BY k) "
        "GROUP BY k, tumble(INTERVAL 1 MINUTE)"
    )
    reads = {
        o.name: sorted(name for _, name in columns_behind(shape, o.expr)) for o in shape.outputs
    }
    assert reads == {"k": ["id", "v"], "q": ["x", "xs"], "w": []}
    assert [[of.uses for of in lists_behind(shape, output.expr)] for output in shape.outputs] == [
        [],
        [(("t", "xs"),)],
        [],
    ]
    assert used_columns([shape]) == {"t": {"id", "v", "x", "xs"}}


NAMES: list[tuple[str, dict[str, str]]] = [
    ("SELECT id, count(*) AS n FROM t GROUP BY id, v % 2", {"id": "k0", "v % 2": "k1"}),
    (
        "SELECT k AS kind, w FROM (SELECT id AS k, date_trunc('hour', _time) AS w FROM t "
        "GROUP BY w, k)",
        {"kind": "k0", "window_start": "window_start"},
    ),
    ("SELECT upper(id) AS id FROM t GROUP BY id, upper(id)", {"id": "k0", "id_2": "k1"}),
    ("SELECT count(*) AS n FROM t", {}),
]


@pytest.mark.parametrize(("sql", "named"), NAMES)
def test_grouping_values_have_the_names_of_the_result(sql: str, named: dict[str, str]) -> None:
    assert read(sql).groups[-1].named == tuple(named.items())


def test_a_call_that_duckdb_refuses() -> None:
    shape = read("SELECT sum(x) AS x, sum(id) AS n FROM t")
    with pytest.raises(ModelError, match=r"no function takes these types: sum\(VARCHAR\)"):
        group_columns({"t": COLUMNS}, shape, None)
