"""What a query becomes that asks dynamic tables: rows of SQL before and after."""

import pytest

from kaflow_engine.errors import Location
from kaflow_engine.sql.named.checks import with_checks
from kaflow_engine.sql.named.dynamic_tables import DynamicTable
from kaflow_engine.sql.parse import parse_query
from kaflow_engine.sql.syntax import DIALECT

AT = Location("p.yaml", 1)
TABLES = (
    DynamicTable(name="Seen", of="t", key="k", attached=False, at=AT),
    DynamicTable(name="vips", of="users", key="id", attached=True, at=AT),
)
SEEN = 'LEFT JOIN (SELECT "k" AS "$value" FROM "Seen") AS "{0}" ON "{0}"."$value" = {1}'
VIPS = 'LEFT JOIN "users" AS "vips" ON "vips"."$value" = {0}'
ANSWER = 'CASE WHEN {1} IS NULL THEN NULL ELSE NOT "{0}"."$value" IS NULL END'

ROWS = [
    (
        "SELECT a FROM t WHERE NOT dynamic_table_check('seen', a)",
        f"SELECT a FROM t {SEEN.format('Seen', 'a')} WHERE NOT {ANSWER.format('Seen', 'a')}",
    ),
    (
        "SELECT dynamic_table_check('seen', a) AS x, DYNAMIC_TABLE_CHECK('SEEN', A) AS y FROM t",
        f"SELECT {ANSWER.format('Seen', 'a')} AS x, {ANSWER.format('Seen', 'A')} AS y "
        f"FROM t {SEEN.format('Seen', 'a')}",
    ),
    (
        "SELECT seen, seen_2.b AS b, dynamic_table_check('seen', a + 1) AS x FROM t",
        f"SELECT seen, seen_2.b AS b, {ANSWER.format('Seen_3', '(a + 1)')} AS x "
        f"FROM t {SEEN.format('Seen_3', '(a + 1)')}",
    ),
    (
        "SELECT * FROM t CROSS JOIN unnest(t.xs) AS u(x) WHERE dynamic_table_check('vips', a) "
        "AND dynamic_table_check('seen', b)",
        f"SELECT * FROM t {SEEN.format('Seen', 'b')} {VIPS.format('a')} "
        f"CROSS JOIN UNNEST(t.xs) AS u(x) "
        f"WHERE {ANSWER.format('vips', 'a')} AND {ANSWER.format('Seen', 'b')}",
    ),
    (
        "SELECT * FROM t JOIN o USING (a) LEFT JOIN users AS u ON a = u.id "
        "WHERE dynamic_table_check('vips', b) AND dynamic_table_check('seen', b)",
        f"SELECT * FROM t JOIN o USING (a) {SEEN.format('Seen', 'b')} "
        f"LEFT JOIN users AS u ON a = u.id {VIPS.format('b')} "
        f"WHERE {ANSWER.format('vips', 'b')} AND {ANSWER.format('Seen', 'b')}",
    ),
    (
        "SELECT x FROM (SELECT dynamic_table_check('seen', a) AS x FROM t) AS u "
        "UNION ALL SELECT b FROM o WHERE dynamic_table_check('seen', b)",
        f"SELECT x FROM (SELECT {ANSWER.format('Seen', 'a')} AS x FROM t "
        f"{SEEN.format('Seen', 'a')}) AS u "
        f"UNION ALL SELECT b FROM o {SEEN.format('Seen', 'b')} WHERE {ANSWER.format('Seen', 'b')}",
    ),
    ("SELECT a FROM t", "SELECT a FROM t"),
]


@pytest.mark.parametrize(("given", "expected"), ROWS)
def test_a_question_is_a_join(given: str, expected: str) -> None:
    before = parse_query(given)
    text = before.sql(dialect=DIALECT)
    found = with_checks(before, TABLES, {"users"}, AT)
    assert found.sql(dialect=DIALECT) == expected
    assert before.sql(dialect=DIALECT) == text  # trees are shared
