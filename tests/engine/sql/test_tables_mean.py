"""A shape of tables means what its SQL means: both are asked of the same rows by DuckDB."""

import random
from collections import Counter

import duckdb
import pytest

from kaflow_engine.model.columns import Column
from kaflow_engine.sql.branches import read_branches
from kaflow_engine.sql.parse import parse_query
from kaflow_engine.sql.shape import QueryShape
from kaflow_engine.sql.tables.filters import with_source_filters
from kaflow_engine.sql.tables.names import ReadTopic

NAMES = {"a": ("id", "k", "x"), "b": ("id", "k", "y"), "c": ("id", "k", "z")}
COLUMNS = {name: tuple(Column(each, "INTEGER") for each in own) for name, own in NAMES.items()}
KINDS = ("LEFT", "INNER", "RIGHT", "FULL")
ROWS = 30

QUERIES = [
    "SELECT id, k, x FROM a WHERE x > 1",
    "SELECT a.id, w.x FROM a KIND JOIN a w ON a.k = w.id WHERE a.x > 1",
    "SELECT a.id, b.y FROM a KIND JOIN b ON a.k = b.k WHERE x > 1 AND y < 3",
    "SELECT a.id, b.y FROM a KIND JOIN b ON a.k = b.k WHERE x > 1 AND y IS NULL",
    "SELECT k, x, y FROM a KIND JOIN b USING (k) WHERE coalesce(x, 5) > 1",
    "SELECT k, x, y FROM a KIND JOIN b USING (id, k)",
    "SELECT k, x, y, z FROM a KIND JOIN b USING (k) OTHER JOIN c USING (k) WHERE y < 3",
    "SELECT x, y, z FROM a KIND JOIN b ON a.k = b.k OTHER JOIN c ON b.id = c.k WHERE x > 1",
    "SELECT x, y, z FROM a KIND JOIN b ON a.k = b.k OTHER JOIN c ON a.id = c.k "
    "WHERE y < 3 AND z > 0",
    "SELECT l.one, r.two, x FROM (SELECT k, x, 1 AS one FROM a WHERE x > 1) l "
    "KIND JOIN (SELECT k, y + 1 AS u, 2 AS two FROM b WHERE y < 3) r USING (k)",
    "SELECT k, l.x, r.y FROM (SELECT coalesce(k, 0) AS k, x FROM a) l "
    "KIND JOIN (SELECT coalesce(k, 7) AS k, y FROM b) r USING (k)",
    "SELECT l.one, l.x, r.z, r.three FROM (SELECT b.id, x, 1 AS one, coalesce(y, 0) AS y "
    "FROM a KIND JOIN b ON a.k = b.k) l "
    "OTHER JOIN (SELECT k, z, 3 AS three FROM c WHERE z > 0) r ON l.y = r.k",
    "SELECT m, z FROM (SELECT coalesce(x, 0) + 1 AS m, a.id FROM a LEFT JOIN b ON a.k = b.k "
    "WHERE x > 1) l OTHER JOIN c ON l.id = c.k",
    "SELECT one, two, z FROM (SELECT k, 1 AS one FROM a) l KIND JOIN (SELECT k, 2 AS two FROM b) r "
    "USING (k) OTHER JOIN c USING (k)",
]


def cases() -> list[str]:
    return [
        text
        for query in QUERIES
        for kind in (KINDS if "KIND" in query else ("",))
        for other in (KINDS if "OTHER" in query else ("",))
        for text in [query.replace("KIND", kind).replace("OTHER", other)]
    ]


def sql_of(shape: QueryShape) -> str:
    """Write a shape as SQL: what it asks of sources first, then joins, then conditions."""

    def source(alias: str) -> str:
        own = shape.source(alias)
        columns = ", ".join(f'{name} AS "{alias}.{name}"' for name in NAMES[own.topic])
        asked = " AND ".join(f"({part.sql})" for part in own.filter) or "true"
        return f'(SELECT * FROM (SELECT {columns} FROM {own.topic}) WHERE {asked}) AS "{alias}"'

    text = source(shape.driving.alias)
    for join in shape.joins:
        on = " AND ".join(f"({pair.outer.sql}) = ({pair.inner.sql})" for pair in join.keys)
        text += f" {join.kind} JOIN {source(join.alias)} ON {on}"
    columns = ", ".join(f'{output.expr.sql} AS "{output.name}"' for output in shape.outputs)
    where = " AND ".join(f"({part.sql})" for part in shape.where) or "true"
    return f"SELECT {columns} FROM {text} WHERE {where}"


@pytest.fixture(scope="module")
def connection() -> duckdb.DuckDBPyConnection:
    found = duckdb.connect(config={"threads": 1})
    numbers = random.Random(16)
    for name, own in NAMES.items():
        rows = [(i, *(numbers.choice([None, 0, 1, 2, 3, 4]) for _ in own[1:])) for i in range(ROWS)]
        found.execute(f"CREATE TABLE {name} ({', '.join(f'{each} INTEGER' for each in own)})")
        found.executemany(f"INSERT INTO {name} VALUES (?, ?, ?)", rows)
    return found


@pytest.mark.parametrize("sql", cases())
def test_a_shape_means_its_sql(sql: str, connection: duckdb.DuckDBPyConnection) -> None:
    branches = read_branches(
        parse_query(sql),
        COLUMNS.get,
        None,
        {},
        topics=lambda name: ReadTopic(topic=name, key=("id",)),
    )
    ((shape,),) = with_source_filters([branches])
    expected = Counter(connection.execute(sql).fetchall())
    assert expected
    assert Counter(connection.execute(sql_of(shape)).fetchall()) == expected
