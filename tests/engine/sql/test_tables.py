"""What tables, joins of them, and look-ups of them are in a shape."""

from typing import Any

import pytest

from kaflow_engine.errors import Location
from kaflow_engine.model.columns import Column
from kaflow_engine.model.pipelines.loader import pipeline_from_mapping
from kaflow_engine.sql.branches import read_branches
from kaflow_engine.sql.chain_shapes import chain_shapes
from kaflow_engine.sql.parse import parse_query
from kaflow_engine.sql.pipeline import pipeline_shapes
from kaflow_engine.sql.shape import QueryShape
from kaflow_engine.sql.tables.filters import with_source_filters
from kaflow_engine.sql.tables.names import ReadTopic


def columns(*names: str) -> tuple[Column, ...]:
    return tuple(Column(name, "VARCHAR") for name in names)


COLUMNS = {
    "a": columns("id", "x", "b_id"),
    "b": columns("id", "y", "c_id"),
    "c": columns("id", "z"),
    "e": columns("id", "a_id", "v"),
    "f": columns("id", "g"),
}
KEYS = {"a": ("ID",), "b": ("_key",), "c": ("id",)}
"""`e` and `f` are events."""


def read_topic(name: str) -> ReadTopic:
    return ReadTopic(topic=name, key=KEYS.get(name))


def read(sql: str) -> QueryShape:
    branches = read_branches(parse_query(sql), COLUMNS.get, None, {}, topics=read_topic)
    return with_source_filters([branches])[0][0]


def shown(shape: QueryShape) -> dict[str, Any]:
    def text(sql: str) -> str:
        return sql.replace('"', "").replace("grouped.", "g.")

    whole: dict[str, Any] = {
        "tables": "".join(s.alias if s.table else s.alias.upper() for s in shape.sources),
        "filters": {s.alias: [text(f.sql) for f in s.filter] for s in shape.sources if s.filter},
        "joins": [
            (j.kind, j.alias, *(f"{text(p.outer.sql)} = {text(p.inner.sql)}" for p in j.keys))
            for j in shape.joins
        ],
        "where": [text(part.sql) for part in shape.where],
        "keys": [text(expr.sql) for group in shape.groups for _, expr in group.keys],
        "having": [text(part.sql) for group in shape.groups for part in group.where],
        "columns": {output.name: text(output.expr.sql) for output in shape.outputs},
    }
    return {name: found for name, found in whole.items() if found}


AB = "a.b_id = b._key"
ROWS: list[tuple[str, dict[str, Any]]] = [
    (
        "SELECT id, _key, _time, _offset FROM b",
        {
            "tables": "b",
            "columns": {"id": "b.id", "_key": "b._key", "_time": "b._time", "_offset": "b._offset"},
        },
    ),
    (
        f"SELECT x, y FROM a LEFT JOIN b ON {AB} WHERE x = '1' AND y = '2'",
        {
            "tables": "ab",
            "filters": {"a": ["a.x = '1'"]},
            "joins": [("LEFT", "b", AB)],
            "where": ["b.y = '2'"],
            "columns": {"x": "a.x", "y": "b.y"},
        },
    ),
    (
        "SELECT x, y FROM a RIGHT JOIN b ON b._key = a.b_id WHERE x = '1' AND y = '2'",
        {
            "tables": "ab",
            "filters": {"b": ["b.y = '2'"]},
            "joins": [("RIGHT", "b", AB)],
            "where": ["a.x = '1'"],
            "columns": {"x": "a.x", "y": "b.y"},
        },
    ),
    (
        f"SELECT x FROM a JOIN b ON {AB} WHERE x = '1' AND y = '2' AND x <> y AND true",
        {
            "tables": "ab",
            "filters": {"a": ["a.x = '1'"], "b": ["b.y = '2'"]},
            "joins": [("INNER", "b", AB)],
            "where": ["a.x <> b.y", "TRUE"],
            "columns": {"x": "a.x"},
        },
    ),
    (
        f"SELECT x FROM a FULL JOIN b ON {AB} WHERE x = '1' AND y = '2'",
        {
            "tables": "ab",
            "joins": [("FULL", "b", AB)],
            "where": ["a.x = '1'", "b.y = '2'"],
            "columns": {"x": "a.x"},
        },
    ),
    (
        f"SELECT x FROM a JOIN b ON {AB} LEFT JOIN c ON b.c_id = c.id WHERE x = '1' AND y = '2' "
        "AND z = '3'",
        {
            "tables": "abc",
            "filters": {"a": ["a.x = '1'"], "b": ["b.y = '2'"]},
            "joins": [("INNER", "b", AB), ("LEFT", "c", "b.c_id = c.id")],
            "where": ["c.z = '3'"],
            "columns": {"x": "a.x"},
        },
    ),
    (
        f"SELECT x FROM a JOIN b ON {AB} RIGHT JOIN c ON b.c_id = c.id WHERE y = '2' AND z = '3'",
        {
            "tables": "abc",
            "filters": {"c": ["c.z = '3'"]},
            "joins": [("INNER", "b", AB), ("RIGHT", "c", "b.c_id = c.id")],
            "where": ["b.y = '2'"],
            "columns": {"x": "a.x"},
        },
    ),
    (
        "SELECT w.x AS who, m.x AS manager FROM a w LEFT JOIN a m ON w.b_id = m.id",
        {
            "tables": "wm",
            "joins": [("LEFT", "m", "w.b_id = m.id")],
            "columns": {"who": "w.x", "manager": "m.x"},
        },
    ),
    (
        "SELECT * FROM a RIGHT JOIN c USING (id)",
        {
            "tables": "ac",
            "joins": [("RIGHT", "c", "a.id = c.id")],
            "columns": {"id": "c.id", "x": "a.x", "b_id": "a.b_id", "z": "c.z"},
        },
    ),
    (
        "SELECT id, x, y, z FROM a FULL JOIN b USING (id) FULL JOIN c USING (id)",
        {
            "tables": "abc",
            "joins": [("FULL", "b", "a.id = b.id"), ("FULL", "c", "COALESCE(a.id, b.id) = c.id")],
            "columns": {"id": "COALESCE(a.id, b.id, c.id)", "x": "a.x", "y": "b.y", "z": "c.z"},
        },
    ),
    (  # what a row is made of is NULL where the row is missing, and a filter inside comes first
        "SELECT l.one, r.two, l.x FROM (SELECT id, x, 1 AS one FROM a WHERE x = '1') l "
        "FULL JOIN (SELECT id, 2 AS two FROM c WHERE z = '3') r ON l.id = r.id",
        {
            "tables": "ac",
            "filters": {"a": ["a.x = '1'"], "c": ["c.z = '3'"]},
            "joins": [("FULL", "c", "a.id = c.id")],
            "columns": {
                "one": "CASE WHEN NOT a.id IS NULL THEN 1 END",
                "two": "CASE WHEN NOT c.id IS NULL THEN 2 END",
                "x": "a.x",
            },
        },
    ),
    (
        "SELECT l.one, r.two FROM (SELECT id, 1 AS one FROM a) l "
        "JOIN (SELECT id, 2 AS two FROM b) r ON l.id = r.id",
        {
            "tables": "ab",
            "joins": [("INNER", "b", "a.id = b.id")],
            "columns": {"one": "1", "two": "2"},
        },
    ),
    (
        "WITH j AS (SELECT a.id, y, 1 AS one FROM a RIGHT JOIN b ON a.b_id = b._key "
        "WHERE y = '2') SELECT one, z FROM j RIGHT JOIN c ON j.y = c.z",
        {
            "tables": "abc",
            "filters": {"b": ["b.y = '2'"]},
            "joins": [("RIGHT", "b", AB), ("RIGHT", "c", "b.y = c.z")],
            "columns": {
                "one": "CASE WHEN NOT a.id IS NULL OR NOT b._key IS NULL THEN 1 END",
                "z": "c.z",
            },
        },
    ),
    (
        f"SELECT x, count(*) AS n FROM a JOIN b ON {AB} WHERE y > '2' AND x <> y GROUP BY x "
        "HAVING count(*) > 1",
        {
            "tables": "ab",
            "filters": {"b": ["b.y > '2'"]},
            "joins": [("INNER", "b", AB)],
            "where": ["a.x <> b.y"],
            "keys": ["a.x"],
            "having": ["g.c0 > 1"],
            "columns": {"x": "g.k0", "n": "g.c0"},
        },
    ),
    (
        "SELECT n + 1 AS m FROM (SELECT date_trunc('hour', _time) AS h, count(*) AS n FROM b "
        "GROUP BY 1) WHERE n > 1",
        {
            "tables": "b",
            "keys": ["DATE_TRUNC('HOUR', b._time)"],
            "having": ["g.c0 > 1"],
            "columns": {"m": "g.c0 + 1"},
        },
    ),
    (  # events drive, whichever stands first, and * has the order of the text
        "SELECT b.* EXCLUDE (id), f.g FROM b JOIN f ON f.id = b._key WHERE y = '2'",
        {
            "tables": "Fb",
            "joins": [("INNER", "b", "f.id = b._key")],
            "where": ["b.y = '2'"],
            "columns": {"y": "b.y", "c_id": "b.c_id", "g": "f.g"},
        },
    ),
    (
        "SELECT * EXCLUDE (id) FROM c JOIN f USING (id)",
        {
            "tables": "Fc",
            "joins": [("INNER", "c", "f.id = c.id")],
            "columns": {"z": "c.z", "g": "f.g"},
        },
    ),
    (
        "SELECT f.g, b.y FROM b JOIN f ON f.id = b._key WHERE y = '2'",
        {
            "tables": "Fb",
            "joins": [("INNER", "b", "f.id = b._key")],
            "where": ["b.y = '2'"],
            "columns": {"g": "f.g", "y": "b.y"},
        },
    ),
    (
        "SELECT v, x, g FROM a RIGHT JOIN e ON e.a_id = a.id LEFT JOIN f ON f.id = e.v",
        {
            "tables": "EaF",
            "joins": [("LEFT", "a", "e.a_id = a.id"), ("LEFT", "f", "e.v = f.id")],
            "columns": {"v": "e.v", "x": "a.x", "g": "f.g"},
        },
    ),
    (
        "WITH t AS (SELECT id, upper(x) AS u FROM a WHERE x > '1') "
        "SELECT v, u FROM t JOIN e ON e.a_id = t.id",
        {
            "tables": "Ea",
            "filters": {"a": ["a.x > '1'"]},
            "joins": [("INNER", "a", "e.a_id = a.id")],
            "columns": {"v": "e.v", "u": "CASE WHEN a.$matched THEN UPPER(a.x) END"},
        },
    ),
]


@pytest.mark.parametrize(("sql", "expected"), ROWS, ids=[sql for sql, _ in ROWS])
def test_shape(sql: str, expected: dict[str, Any]) -> None:
    shape = read(sql)
    assert shown(shape) == expected
    assert shape.is_table == shape.sources[0].table
    if shape.is_table:
        assert all(source.table for source in shape.sources)


def test_queries_that_read_the_same_tables_share_what_is_kept_of_them() -> None:
    spec = pipeline_from_mapping(
        {
            "name": "p",
            "relations": {
                "joined": {
                    "query": f"SELECT a.id, x, y FROM a JOIN b ON {AB} WHERE x > '0'",
                },
                "counted": {
                    "query": "SELECT y, count(*) AS n FROM joined WHERE x > '1' GROUP BY y"
                },
            },
            "outputs": [
                {"from": "counted", "topic": "n"},
                {"query": "SELECT * FROM joined WHERE y = '2'", "topic": "rows"},
                {"query": "SELECT * FROM b WHERE y = '2'", "topic": "alone"},
            ],
            "topics": {"a": {"table": True, "primary_key": ["id"]}, "b": {"table": True}},
        },
        Location("p.yaml", 1),
    )
    chains = chain_shapes(pipeline_shapes(spec, COLUMNS.get))
    found = [[shown(branch.shape) for branch in chain.branches] for chain in chains]
    assert [[each.get("filters") for each in branches] for branches in found] == [
        [{"a": ["a.x > '0'"]}, {"a": ["a.x > '0'"]}],
        [{"b": ["b.y = '2'"]}],
    ]
    assert [[each.get("where") for each in branches] for branches in found] == [
        [["a.x > '1'"], ["b.y = '2'"]],
        [None],
    ]
