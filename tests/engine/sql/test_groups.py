"""What GROUP BY, windows and aggregates are in a shape."""

from typing import Any

import pytest

from kaflow_engine.model.columns import Column
from kaflow_engine.sql.branches import read_branches
from kaflow_engine.sql.groups.event_time import EventTimes
from kaflow_engine.sql.parse import parse_query
from kaflow_engine.sql.shape import Expr, QueryShape

COLUMNS = {
    "t": (
        Column("id", "VARCHAR"),
        Column("v", "BIGINT"),
        Column("x", "DOUBLE"),
        Column("ts", "TIMESTAMP"),
        Column("xs", "INTEGER[]"),
    ),
    "d": (Column("id", "VARCHAR"), Column("name", "VARCHAR"), Column("ts", "TIMESTAMP")),
    "days": (Column("id", "VARCHAR"), Column("day", "DATE")),
    "zoned": (Column("id", "VARCHAR"), Column("at", "TIMESTAMP WITH TIME ZONE")),
}
EVENT_TIMES = {"t": "ts", "days": "day", "zoned": "AT"}


def read(sql: str) -> QueryShape:
    (shape,) = read_branches(
        parse_query(sql), COLUMNS.get, None, {}, EventTimes(column=EVENT_TIMES.get)
    )
    return shape


def text(expr: Expr) -> str:
    return expr.sql.replace('"', "").replace("grouped.", "g.").replace("grouped_2.", "g2.")


def shown(shape: QueryShape) -> dict[str, Any]:
    """Return what says something of the last group."""
    group = shape.groups[-1]
    whole: dict[str, Any] = {
        "keys": [text(expr) for _, expr in group.keys],
        "calls": [call.sql.replace('"', "").replace("$row.", "") for call in group.calls],
        "reads": {name: text(e) for call in group.calls for name, e in call.arguments},
        "where": [text(part) for part in group.where],
        "columns": {output.name: text(output.expr) for output in shape.outputs},
    }
    return {name: found for name, found in whole.items() if found}


ID = ["t.id"]
ROWS: list[tuple[str, dict[str, Any]]] = [
    (
        "SELECT count(*) AS n, sum(v) AS s FROM t WHERE v > 0",
        {
            "calls": ["COUNT(*)", "SUM(a0)"],
            "reads": {"a0": "t.v"},
            "columns": {"n": "g.c0", "s": "g.c1"},
        },
    ),
    (
        "SELECT id, count(*) AS n FROM t GROUP BY t.id",
        {"keys": ID, "calls": ["COUNT(*)"], "columns": {"id": "g.k0", "n": "g.c0"}},
    ),
    (
        "SELECT id AS k, count(*) AS n FROM t GROUP BY k",
        {"keys": ID, "calls": ["COUNT(*)"], "columns": {"k": "g.k0", "n": "g.c0"}},
    ),
    (
        "SELECT upper(id) AS id, count(*) AS n FROM t GROUP BY id, upper(id)",
        {
            "keys": ["t.id", "UPPER(t.id)"],
            "calls": ["COUNT(*)"],
            "columns": {"id": "g.k1", "n": "g.c0"},
        },
    ),
    (
        "SELECT count(*) AS n, v % 10 AS d FROM t GROUP BY 2",
        {"keys": ["t.v % 10"], "calls": ["COUNT(*)"], "columns": {"n": "g.c0", "d": "g.k0"}},
    ),
    (
        "SELECT id, v % 10 AS d, 'x' AS c, count(*) AS n FROM t GROUP BY ALL",
        {
            "keys": ["t.id", "t.v % 10"],
            "calls": ["COUNT(*)"],
            "columns": {"id": "g.k0", "d": "g.k1", "c": "'x'", "n": "g.c0"},
        },
    ),
    ("SELECT count(*) AS n FROM t GROUP BY ()", {"calls": ["COUNT(*)"], "columns": {"n": "g.c0"}}),
    (
        "SELECT sum(v) / count(*) AS m, round(avg(x), 2) AS r, sum(v) AS s FROM t GROUP BY id",
        {
            "keys": ID,
            "calls": ["SUM(a0)", "COUNT(*)", "AVG(a1)"],
            "reads": {"a0": "t.v", "a1": "t.x"},
            "columns": {"m": "g.c0 / g.c1", "r": "ROUND(g.c2, 2)", "s": "g.c0"},
        },
    ),
    (
        "SELECT lower(id) || '!' AS k, concat(ID, 'a') AS c, any_value(x + 1) AS a FROM t GROUP "
        "BY (id)",
        {
            "keys": ID,
            "calls": ["ANY_VALUE(a0)"],
            "reads": {"a0": "t.x + 1"},
            "columns": {"k": "LOWER(g.k0) || '!'", "c": "CONCAT(g.k0, 'a')", "a": "g.c0"},
        },
    ),
    (
        "SELECT upper(id) AS u, length(upper(id)) AS n FROM t GROUP BY upper(id)",
        {"keys": ["UPPER(t.id)"], "columns": {"u": "g.k0", "n": "LENGTH(g.k0)"}},
    ),
    (
        "SELECT count(DISTINCT v) FILTER (WHERE x > 0) AS n, count(v) FILTER (x > 0) AS m FROM t",
        {
            "calls": ["COUNT(DISTINCT a0) FILTER(WHERE a1)", "COUNT(a0) FILTER(WHERE a1)"],
            "reads": {"a0": "t.v", "a1": "t.x > 0"},
            "columns": {"n": "g.c0", "m": "g.c1"},
        },
    ),
    (
        "SELECT string_agg(id, ',' ORDER BY ts DESC, v) AS l, list(v ORDER BY v) AS o FROM t",
        {
            "calls": ["LISTAGG(a0, ',' ORDER BY a1 DESC, a2)", "ARRAY_AGG(a2 ORDER BY a2)"],
            "reads": {"a0": "t.id", "a1": "t.ts", "a2": "t.v"},
            "columns": {"l": "g.c0", "o": "g.c1"},
        },
    ),
    (
        "SELECT median(v) AS m, quantile_cont(x, 0.9) AS q, percentile_cont(0.5) WITHIN GROUP "
        "(ORDER BY x) AS p FROM t",
        {
            "calls": ["MEDIAN(a0)", "QUANTILE_CONT(a1, 0.9)", "QUANTILE_CONT(a1, 0.5 ORDER BY a1)"],
            "reads": {"a0": "t.v", "a1": "t.x"},
            "columns": {"m": "g.c0", "q": "g.c1", "p": "g.c2"},
        },
    ),
    (
        "SELECT arg_max(id, v) AS a, max_by(id, v) AS b, max(v, 3) AS c, bool_and(v > 1) AS e, "
        "histogram(v) AS h FROM t",
        {
            "calls": [
                "ARG_MAX(a0, a1)",
                "MAX(a1, 3)",
                "BOOL_AND(CAST(a2 AS BOOLEAN))",
                "HISTOGRAM(a1)",
            ],
            "reads": {"a0": "t.id", "a1": "t.v", "a2": "t.v > 1"},
            "columns": {"a": "g.c0", "b": "g.c0", "c": "g.c1", "e": "g.c2", "h": "g.c3"},
        },
    ),
    (
        "SELECT id, count(*) AS n FROM t GROUP BY id HAVING count(*) > 2 AND n < 9 AND id <> 'a' "
        "AND max(v) > 0",
        {
            "keys": ID,
            "calls": ["COUNT(*)", "MAX(a0)"],
            "reads": {"a0": "t.v"},
            "where": ["g.c0 > 2", "g.c0 < 9", "g.k0 <> 'a'", "g.c1 > 0"],
            "columns": {"id": "g.k0", "n": "g.c0"},
        },
    ),
    (
        "SELECT id, n + 1 AS m FROM (SELECT id, count(*) AS n, max(v) AS w FROM t GROUP BY id) "
        "WHERE n > 3 AND w > 0",
        {
            "keys": ID,
            "calls": ["COUNT(*)", "MAX(a0)"],
            "reads": {"a0": "t.v"},
            "where": ["g.c0 > 3", "g.c1 > 0"],
            "columns": {"id": "g.k0", "m": "g.c0 + 1"},
        },
    ),
    (
        "WITH g AS (SELECT id, sum(v) AS s FROM t GROUP BY id HAVING s > 0) SELECT g.*, s * 2 AS "
        "d FROM g WHERE id IS NOT NULL",
        {
            "keys": ID,
            "calls": ["SUM(a0)"],
            "reads": {"a0": "t.v"},
            "where": ["g.c0 > 0", "NOT g.k0 IS NULL"],
            "columns": {"id": "g.k0", "s": "g.c0", "d": "g.c0 * 2"},
        },
    ),
    (
        "SELECT id, window_start, window_end, max(v) AS m FROM t GROUP BY id, tumble(INTERVAL 5 "
        "MINUTE)",
        {
            "keys": ID,
            "calls": ["MAX(a0)"],
            "reads": {"a0": "t.v"},
            "columns": {
                "id": "g.k0",
                "window_start": "g.window_start",
                "window_end": "g.window_end",
                "m": "g.c0",
            },
        },
    ),
    (
        "SELECT window_start AS s, strftime(window_end, '%H') AS h FROM t GROUP BY "
        "tumble(INTERVAL 5 MINUTE) HAVING window_start > TIMESTAMP '2020-01-01'",
        {
            "where": ["g.window_start > CAST('2020-01-01' AS TIMESTAMP)"],
            "columns": {"s": "g.window_start", "h": "STRFTIME(g.window_end, '%H')"},
        },
    ),
    (
        "SELECT tumble(INTERVAL 5 MINUTE) AS w, id, count(*) AS n FROM t GROUP BY ALL",
        {
            "keys": ID,
            "calls": ["COUNT(*)"],
            "columns": {"w": "g.window_start", "id": "g.k0", "n": "g.c0"},
        },
    ),
    (
        "SELECT date_trunc('hour', ts) AS h, date_trunc('hour', ts) + INTERVAL 1 HOUR AS e, "
        "window_end FROM t GROUP BY h, date_trunc('hour', ts)",
        {
            "columns": {
                "h": "g.window_start",
                "e": "g.window_start + INTERVAL '1' HOUR",
                "window_end": "g.window_end",
            }
        },
    ),
    (
        "SELECT date_trunc('hour', ts) AS h, date_trunc('day', ts) AS d FROM t GROUP BY h, d",
        {"keys": ["DATE_TRUNC('DAY', t.ts)"], "columns": {"h": "g.window_start", "d": "g.k0"}},
    ),
    (
        "SELECT date_trunc('hour', d.ts) AS h, count(*) AS n FROM t LEFT JOIN d ON t.id = d.id "
        "GROUP BY h",
        {
            "keys": ["DATE_TRUNC('HOUR', d.ts)"],
            "calls": ["COUNT(*)"],
            "columns": {"h": "g.k0", "n": "g.c0"},
        },
    ),
    (
        "SELECT name, window_start, sum(v) AS s FROM t JOIN d ON t.id = d.id GROUP BY name, "
        "tumble(INTERVAL 1 MINUTE)",
        {
            "keys": ["d.name"],
            "calls": ["SUM(a0)"],
            "reads": {"a0": "t.v"},
            "columns": {"name": "g.k0", "window_start": "g.window_start", "s": "g.c0"},
        },
    ),
    (
        "SELECT y, count(*) AS n FROM (SELECT unnest(xs) AS y FROM t) GROUP BY y",
        {"keys": ["unnest.xs"], "calls": ["COUNT(*)"], "columns": {"y": "g.k0", "n": "g.c0"}},
    ),
    (
        "SELECT u.y, count(*) AS n FROM t, unnest(xs) AS u(y) WHERE y > 0 GROUP BY ALL",
        {"keys": ["u.y"], "calls": ["COUNT(*)"], "columns": {"y": "g.k0", "n": "g.c0"}},
    ),
    (
        "SELECT now() AS n, max(v) AS m FROM t",
        {
            "calls": ["MAX(a0)"],
            "reads": {"a0": "t.v"},
            "columns": {"n": "$batch_time", "m": "g.c0"},
        },
    ),
    (
        "SELECT date_trunc('day', at) AS d FROM zoned GROUP BY d",
        {"columns": {"d": "CAST(g.window_start AS TIMESTAMPTZ)"}},
    ),
    (
        "SELECT time_bucket(INTERVAL 2 DAY, day) AS d FROM days GROUP BY d",
        {"columns": {"d": "CAST(g.window_start AS DATE)"}},
    ),
    (
        "SELECT window_start, sum(n) AS s FROM (SELECT id, window_start, count(*) AS n FROM t "
        "GROUP BY id, tumble(INTERVAL 10 SECOND)) GROUP BY window_start",
        {
            "calls": ["SUM(a0)"],
            "reads": {"a0": "g.c0"},
            "columns": {"window_start": "g2.window_start", "s": "g2.c0"},
        },
    ),
    (
        "SELECT k, window_start, max(w) AS w FROM (SELECT id AS k, window_start AS w FROM t "
        "GROUP BY id, hop(INTERVAL 10 SECOND, INTERVAL 5 SECOND)) GROUP BY k, session(_time, "
        "INTERVAL 1 MINUTE)",
        {
            "keys": ["g.k0"],
            "calls": ["MAX(a0)"],
            "reads": {"a0": "g.window_start"},
            "columns": {"k": "g2.k0", "window_start": "g2.window_start", "w": "g2.c0"},
        },
    ),
]


@pytest.mark.parametrize(("sql", "found"), ROWS)
def test_shape(sql: str, found: dict[str, Any]) -> None:
    assert shown(read(sql)) == found
