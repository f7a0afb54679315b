"""Look-ups in a real MariaDB: values of every type, equal to SQL over the same rows, one query for
the values of a batch, and a server that goes and comes back."""
# pyright: basic

import json
from collections import Counter

import duckdb
import pymysql
import pytest

from kaflow_engine.connectors.mysql.attached import MySQLTable
from kaflow_engine.connectors.mysql.client import connect
from kaflow_engine.errors import SourceAway, SourceUnfit
from kaflow_engine.model.outputs.connection_specs import MySQLConnection
from tests.engine.transforms.files_here import QUERY
from tests.engine.transforms.lookup_here import Running

pytestmark = pytest.mark.services


@pytest.fixture
def crm(mariadb):
    """Run statements in the database `crm`, which is there for one test."""

    def statements(*texts):
        with connect({"url": mariadb.url}) as connection, connection.cursor() as cursor:
            for text in ("SET SESSION TRANSACTION READ WRITE", *texts):
                cursor.execute(text)

    statements("CREATE OR REPLACE DATABASE crm CHARACTER SET utf8mb4", "USE crm")
    yield lambda *texts: statements("USE crm", *texts)
    statements("DROP DATABASE crm")


def running(mariadb, query, columns, about=(), **how):
    return Running(mariadb.url, query, columns, {"type": "mysql", **dict(about)}, **how)


def test_values_of_every_type_come_as_they_are(mariadb, crm):
    crm(
        "CREATE TABLE users (id bigint, name varchar(20), paid decimal(20, 4), part float, "
        "rate double, at datetime(6), seen timestamp(6) NULL, day date, clock time(3), y year, "
        "raw varbinary(9), doc json, u uuid, mood enum('sad', 'ok'), yes boolean, bits bit(3), "
        "big bigint unsigned, small int(5) unsigned zerofill)",
        "INSERT INTO users VALUES (1, 'a\\n%\\\\\"ü', 12345678901234.5678, 0.1, 1e20, "
        "'2026-01-02 03:04:05.678901', '2026-01-02 01:04:05', '2026-02-03', '03:04:05.5', 2026, "
        "x'00ff', '{\"a\": [1, null]}', '00000000-0000-0000-0000-00000000000a', 'ok', true, "
        "b'101', 18446744073709551615, 7)",
        "INSERT INTO users (id) VALUES (2)",
    )
    types = {"id": "BIGINT", "doc": "JSON", "yes": "BOOLEAN"}
    query = "SELECT u.*, v.doc AS json, v.yes AS truth FROM t LEFT JOIN users u ON t.k = u.id "
    query += "LEFT JOIN typed v ON t.k = v.id"
    users = {"type": "mysql", "table_name": "crm.users", "attached": True}
    one, nulls, none = running(
        mariadb, query, {"k": "BIGINT"}, beside={"typed": {**users, "columns": types}}
    ).rows({"k": 1}, {"k": 2}, {"k": 3})
    assert one == {
        "id": 1,
        "name": 'a\n%\\"ü',
        "paid": 12345678901234.5678,
        "part": 0.1,
        "rate": 1e20,
        "at": "2026-01-02T03:04:05.678901Z",
        "seen": "2026-01-02T01:04:05Z",
        "day": "2026-02-03",
        "clock": "03:04:05.5",
        "y": 2026,
        "raw": "AP8=",
        "doc": '{"a": [1, null]}',
        "u": "00000000-0000-0000-0000-00000000000a",
        "mood": "ok",
        "yes": 1,
        "bits": 5,
        "big": 18446744073709551615,
        "small": 7,
        "json": {"a": [1, None]},
        "truth": True,
    }
    assert nulls == {**dict.fromkeys(one), "id": 2}
    assert none == dict.fromkeys(one)


JOINS = [
    ("LEFT JOIN users u ON t.k = u.id", "BIGINT"),
    ("JOIN users u ON u.name = t.s", "BIGINT"),
    ("LEFT JOIN users u ON u.name = t.s AND t.k = u.id", "BIGINT"),
    ("LEFT JOIN users u ON t.k = u.id", "DOUBLE"),
]


@pytest.mark.parametrize(("join", "kind"), JOINS)
def test_equals_sql_over_the_same_rows(mariadb, crm, join, kind):
    people = [(n % 7, f"n{n % 3}", n) for n in range(12)] + [(3, "N1", 21), (3, "n1 ", 22)]
    crm(
        "CREATE TABLE users (id integer, name varchar(9), number integer)",
        f"INSERT INTO users VALUES {', '.join(map(str, people))}, (NULL, 'n0', 20), (3, NULL, 23)",
    )
    people += [(None, "n0", 20), (3, None, 23)]
    given = [
        {"n": n, "k": k, "s": f"n{n % 4}"}
        for n, k in enumerate([0, 1, 2, 3, 3, 9, None, 1.5 if kind == "DOUBLE" else 5, 10**9])
    ]
    query = f"SELECT t.n, u.number, u.name AS called FROM t {join}"
    found = running(mariadb, query, {"n": "INTEGER", "k": kind, "s": "VARCHAR"}).rows(*given)
    with duckdb.connect() as twin:
        twin.execute("CREATE TABLE users (id INTEGER, name VARCHAR, number INTEGER)")
        twin.executemany("INSERT INTO users VALUES (?, ?, ?)", people)
        twin.execute(f"CREATE TABLE t (n INTEGER, k {kind}, s VARCHAR)")
        twin.executemany("INSERT INTO t VALUES (?, ?, ?)", [[*row.values()] for row in given])
        wanted = twin.execute(f"SELECT to_json(x) FROM ({query}) x").fetchall()
    texts = Counter(json.dumps(row) for row in found)
    assert texts == Counter(json.dumps(json.loads(text)) for (text,) in wanted)


KEYS = [  # declared there, stored, type of the other side, value
    ("varchar(9) CHARACTER SET latin1", "'é'", "VARCHAR", "é"),
    ("char(9)", "'a '", "VARCHAR", "a"),
    ("text COLLATE utf8mb4_bin", "'%s'", "VARCHAR", "%s"),
    ("decimal(8,2)", "1.5", "DECIMAL(10,3)", 1.5),
    ("float", "0.1", "FLOAT", 0.1),
    ("double", "0.1", "DOUBLE", 0.1),
    ("timestamp NULL", "'2026-01-02 01:04:05'", "TIMESTAMP WITH TIME ZONE", "2026-01-02T01:04:05Z"),
    ("datetime(3)", "'2026-01-02 01:04:05.5'", "TIMESTAMP", "2026-01-02T01:04:05.5Z"),
    ("date", "'2026-01-02'", "DATE", "2026-01-02"),
    ("enum('a', 'b')", "'a'", "VARCHAR", "a"),
    (
        "uuid",
        "'00000000-0000-0000-0000-00000000000a'",
        "UUID",
        "00000000-0000-0000-0000-00000000000A",
    ),
    ("bigint unsigned", "18446744073709551615", "UBIGINT", 18446744073709551615),
    ("bit(3)", "b'101'", "INTEGER", 5),
]


def test_values_that_rows_are_found_by(mariadb, crm):
    for number, (there, stored, _, _) in enumerate(KEYS):
        crm(
            f"CREATE TABLE users{number} (id {there}, name text)",
            f"INSERT INTO users{number} VALUES ({stored}, 'a{number}')",
        )
    users = {"type": "mysql", "attached": True}
    beside = {f"users{n}": {**users, "table_name": f"crm.users{n}"} for n in range(1, len(KEYS))}
    joins = " ".join(f"JOIN users{n} u{n} ON t.k{n} = u{n}.id" for n in range(1, len(KEYS)))
    names = ", ".join(f"u{n}.name AS n{n}" for n in range(len(KEYS)))
    query = f"SELECT {names} FROM t JOIN users u0 ON t.k0 = u0.id {joins}"
    columns = {f"k{n}": outer for n, (_, _, outer, _) in enumerate(KEYS)}
    here = running(mariadb, query, columns, {"table_name": "crm.users0"}, beside=beside)
    row = {f"k{n}": value for n, (*_, value) in enumerate(KEYS)}
    assert here.rows(row) == [{f"n{n}": f"a{n}" for n in range(len(KEYS))}]


def test_one_query_for_the_values_of_a_batch(mariadb, crm, monkeypatch):
    crm(
        "CREATE TABLE users (id integer PRIMARY KEY, name varchar(9))",
        "INSERT INTO users SELECT seq, concat('n', seq) FROM seq_0_to_999",
    )
    asked, before = [], MySQLTable.find

    def counted(self, wanted, on, keys, **how):
        asked.append(len(keys))
        return before(self, wanted, on, keys, **how)

    monkeypatch.setattr(MySQLTable, "find", counted)
    query = "SELECT t.k, u.name FROM t JOIN users u ON t.k = u.id"
    rows = running(mariadb, query, {"k": "INTEGER"}).rows(*({"k": n % 1100} for n in range(5000)))
    assert asked == [1100]
    assert Counter(row["name"] for row in rows) == Counter(
        f"n{n % 1100}" for n in range(5000) if n % 1100 < 1000
    )


def test_a_view_a_condition_and_a_row_that_is_inserted(mariadb, crm):
    crm(
        "CREATE TABLE people (id integer, name text, gone boolean, `pct%s``?` integer)",
        "CREATE VIEW users AS SELECT id, upper(name) AS name, gone, `pct%s``?` FROM people",
        "INSERT INTO people VALUES (1, 'a%s', false, 7), (2, 'b', true, 8)",
    )
    about = {"where": "NOT gone AND name LIKE '%%S' -- not b"}
    query = 'SELECT t.k, u.name, u."pct%s`?" AS p FROM t LEFT JOIN users u ON t.k = u.id'
    here = running(mariadb, query, {"k": "INTEGER"}, about)
    assert [row["name"] for row in here.rows({"k": 1}, {"k": 2})] == ["A%S", None]
    crm("INSERT INTO people VALUES (2, 'c%s', false, 9)")
    assert here.rows({"k": 2}) == [{"k": 2, "name": "C%S", "p": 9}]


def test_the_database_away_and_back(mariadb, crm):
    crm("CREATE TABLE users (id integer, name text)", "INSERT INTO users VALUES (1, 'a')")
    here = running(mariadb, QUERY, {"k": "INTEGER"})
    assert here.rows({"k": 1}) == [{"k": 1, "name": "a"}]
    mariadb.stop()
    try:
        with pytest.raises(SourceAway, match="looking up source 'users' failed") as raised:
            here.rows({"k": 1})
    finally:
        mariadb.start()
    assert "pass-word" not in str(raised.value)
    assert here.rows({"k": 1}) == [{"k": 1, "name": "a"}]


def test_what_cannot_heal_says_what_to_do(mariadb, crm):
    crm("CREATE TABLE users (id integer, name text, place point)")
    for about, why in (
        ({}, "column 'place' of table 'crm.users', which source 'users' reads, is point"),
        ({"table_name": "crm.nope"}, r"there is no table 'crm\.nope' for source 'users' in conn"),
        ({"columns": {"id": "INT", "nam": "VARCHAR"}}, "has no column 'nam'"),
        ({"where": "gone > 1", "columns": {"id": "INT"}}, "Unknown column 'gone'"),
    ):
        with pytest.raises(SourceUnfit, match=why) as raised:
            running(mariadb, QUERY, {"k": "INTEGER"}, about)
        assert str(raised.value).startswith("p.yaml")
        assert raised.value.hint
    wrong = mariadb.url.replace("pass-word", "wrong-word")
    with pytest.raises(SourceUnfit, match="Access denied") as refused:
        Running(wrong, QUERY, {"k": "INTEGER"}, {"type": "mysql"})
    assert "wrong-word" not in str(refused.value)


def test_nothing_can_be_written(mariadb):
    settings = MySQLConnection(url=mariadb.url).settings
    with connect(settings) as connection, connection.cursor() as cursor:
        with pytest.raises(pymysql.OperationalError, match="READ ONLY"):
            cursor.execute("CREATE TABLE kaflow.t (a INT)")
