"""Look-ups in a real PostgreSQL: equal to SQL over the same rows, one query for the values of a
batch, and the same again when a batch runs again."""
# pyright: basic

import json
from collections import Counter
from datetime import UTC, datetime
from decimal import Decimal

import duckdb
import psycopg
import pytest

from kaflow_engine.connectors.attached.table import AttachedTable
from kaflow_engine.errors import SourceAway, SourceUnfit
from kaflow_engine.testing.local.world import Crashed
from tests.engine.transforms.lookup_here import Running

pytestmark = pytest.mark.services

PLACES = (
    *("before changes_written", "after changes_written"),
    *("before delivered", "after delivered", "before committed"),
)


@pytest.fixture
def asked(monkeypatch):
    """The queries that were sent: of each how many values it had."""
    found = []
    before = AttachedTable.with_values

    def counted(self, wanted, on, keys, **how):
        found.append(len(keys))
        return before(self, wanted, on, keys, **how)

    monkeypatch.setattr(AttachedTable, "with_values", counted)
    return found


def test_values_of_every_type_come_as_they_are(postgres, crm):
    crm(
        "CREATE TYPE crm.mood AS ENUM ('sad', 'ok')",
        "CREATE TABLE crm.users (id bigint, name varchar(20), paid numeric(20, 4), part real, "
        "at timestamp, seen timestamptz, day date, tags text[], raw bytea, doc jsonb, u uuid, "
        "mood crm.mood, yes boolean)",
        "INSERT INTO crm.users VALUES (1, E'a\\n%\\\\\"ü', 12345678901234.5678, 0.5, "
        "'2026-01-02 03:04:05.678901', '2026-01-02 03:04:05+02', '2026-02-03', '{a,NULL,b}', "
        "'\\x00ff', '{\"a\": [1, null]}', '00000000-0000-0000-0000-00000000000a', 'ok', true)",
        "INSERT INTO crm.users (id) VALUES (2)",
    )
    query = "SELECT u.* FROM t LEFT JOIN users u ON t.k = u.id"
    one, nulls, none = Running(postgres.url, query, {"k": "BIGINT"}).rows(
        {"k": 1}, {"k": 2}, {"k": 3}
    )
    assert one == {
        "id": 1,
        "name": 'a\n%\\"ü',
        "paid": 12345678901234.5678,
        "part": 0.5,
        "at": "2026-01-02T03:04:05.678901Z",
        "seen": "2026-01-02T01:04:05Z",
        "day": "2026-02-03",
        "tags": ["a", None, "b"],
        "raw": "AP8=",
        "doc": {"a": [1, None]},
        "u": "00000000-0000-0000-0000-00000000000a",
        "mood": "ok",
        "yes": True,
    }
    assert nulls == {**dict.fromkeys(one), "id": 2}
    assert none == dict.fromkeys(one)


JOINS = [
    ("LEFT JOIN users u ON t.k = u.id", "BIGINT"),
    ("JOIN users u ON t.k = u.id", "BIGINT"),
    ("LEFT JOIN users u ON u.name = t.s AND t.k = u.id", "BIGINT"),
    ("JOIN users u ON u.name = t.s", "BIGINT"),
    ("LEFT JOIN users u ON t.k + 1 = u.id", "INTEGER"),
    ("LEFT JOIN users u ON t.k = u.id", "DOUBLE"),
    ("JOIN users u USING (name)", "BIGINT"),
]


@pytest.mark.parametrize(("join", "kind"), JOINS)
def test_equals_sql_over_the_same_rows(postgres, crm, join, kind):
    people = [(n % 7, f"n{n % 3}", n) for n in range(12)] + [(None, "n0", 20), (3, None, 21)]
    crm("CREATE TABLE crm.users (id integer, name text, number integer)")
    with psycopg.connect(postgres.url, autocommit=True) as connection:
        connection.cursor().executemany("INSERT INTO crm.users VALUES (%s, %s, %s)", people)
    given = [
        {"n": n, "k": k, "s": f"n{n % 4}", "name": f"n{n % 5}"}
        for n, k in enumerate([0, 1, 2, 3, 3, 9, None, 1.5 if kind == "DOUBLE" else 5, 10**9])
    ]
    columns = {"n": "INTEGER", "k": kind, "s": "VARCHAR", "name": "VARCHAR"}
    query = (
        f"SELECT t.n, u.number, u.name AS called FROM t {join} WHERE u.number IS DISTINCT FROM 4"
    )
    found = Running(postgres.url, query, columns).rows(*given)
    with duckdb.connect() as twin:
        twin.execute("CREATE TABLE users (id INTEGER, name VARCHAR, number INTEGER)")
        twin.executemany("INSERT INTO users VALUES (?, ?, ?)", people)
        twin.execute(f"CREATE TABLE t (n INTEGER, k {kind}, s VARCHAR, name VARCHAR)")
        twin.executemany("INSERT INTO t VALUES (?, ?, ?, ?)", [[*row.values()] for row in given])
        wanted = twin.execute(f"SELECT to_json(x) FROM ({query}) x").fetchall()
    texts = Counter(json.dumps(row) for row in found)
    assert texts == Counter(json.dumps(json.loads(text)) for (text,) in wanted)


def test_a_text_that_no_number_equals_finds_nothing(postgres, crm):
    crm("CREATE TABLE crm.users (id smallint, name text)", "INSERT INTO crm.users VALUES (1, 'a')")
    query = "SELECT t.k, u.name FROM t LEFT JOIN users u ON t.k = u.id"
    running = Running(postgres.url, query, {"k": "VARCHAR"})
    rows = running.rows({"k": "1"}, {"k": "x"}, {"k": "99999"}, {"k": "' OR 1=1"})
    assert [row["name"] for row in rows] == ["a", None, None, None]


def test_one_query_for_the_values_of_a_batch(postgres, crm, asked):
    crm(
        "CREATE TABLE crm.users (id integer PRIMARY KEY, name text)",
        "INSERT INTO crm.users SELECT n, 'n' || n FROM generate_series(0, 999) n",
    )
    query = "SELECT t.k, u.name FROM t JOIN users u ON t.k = u.id"
    running = Running(postgres.url, query, {"k": "INTEGER"})
    rows = running.rows(*({"k": n % 1100} for n in range(5000)))
    assert asked == [1100]
    assert Counter(row["name"] for row in rows) == Counter(
        f"n{n % 1100}" for n in range(5000) if n % 1100 < 1000
    )


def test_what_is_inserted_is_seen_at_once_or_after_refresh(postgres, crm, asked, monkeypatch):
    crm("CREATE TABLE crm.users (id integer, name text)")
    query = "SELECT t.k, u.name FROM t LEFT JOIN users u ON t.k = u.id"
    at_once = Running(postgres.url, query, {"k": "INTEGER"})
    now = [1000.0]
    monkeypatch.setattr("kaflow_engine.transforms.lookup.lookup.monotonic", lambda: now[0])
    later = Running(postgres.url, query, {"k": "INTEGER"}, about={"refresh": "5s"})
    assert [at_once.rows({"k": 1})[0]["name"], later.rows({"k": 1})[0]["name"]] == [None, None]
    crm("INSERT INTO crm.users VALUES (1, 'a')")
    now[0] += 4.9
    assert later.rows({"k": 1})[0]["name"] is None
    now[0] += 0.2
    assert [at_once.rows({"k": 1})[0]["name"], later.rows({"k": 1})[0]["name"]] == ["a", "a"]


VIPS = {"vips": {"type": "dynamic_table", "from": "users", "key": "ID"}}


def test_a_dynamic_table_in_the_database(postgres, crm, asked):
    crm(
        "CREATE TABLE crm.users (id integer, name text)",
        "INSERT INTO crm.users VALUES (1, 'a'), (1, 'b'), (2, 'a'), (NULL, 'c')",
    )
    query = """
        SELECT *, dynamic_table_check('vips', t.id) AS vip, u.name
        FROM t LEFT JOIN users u ON t.k = u.id
        WHERE dynamic_table_check('vips', k + 1) IS DISTINCT FROM TRUE
    """
    columns = {"id": "INTEGER", "k": "INTEGER"}
    running = Running(postgres.url, query.replace("*", "t.*"), columns, relations=VIPS)
    rows = running.rows({"id": 1, "k": 2}, {"id": 3, "k": 1}, {"k": 4}, {"id": 2, "k": 4})
    assert rows == [
        {"id": 1, "k": 2, "vip": True, "name": "a"},
        {"id": None, "k": 4, "vip": None, "name": None},
        {"id": 2, "k": 4, "vip": True, "name": None},
    ]
    crm("DELETE FROM crm.users WHERE id = 1", "INSERT INTO crm.users VALUES (5, 'e')")
    assert running.rows({"id": 1, "k": 9}, {"id": 5, "k": 5}) == [
        {"id": 1, "k": 9, "vip": False, "name": None},
        {"id": 5, "k": 5, "vip": True, "name": "e"},
    ]
    whole = "SELECT * FROM t WHERE NOT dynamic_table_check('vips', k)"
    running = Running(postgres.url, whole, columns, relations=VIPS)
    assert running.rows({"id": 1, "k": 1}, {"id": 1, "k": 5}) == [{"id": 1, "k": 1}]


@pytest.mark.parametrize("place", PLACES)
@pytest.mark.parametrize("spread", [False, True])
def test_a_batch_that_runs_again_is_the_same(postgres, crm, place, spread):
    crm(
        "CREATE TABLE crm.users (id integer, name text)",
        "INSERT INTO crm.users SELECT n, 'before' FROM generate_series(0, 19) n",
    )
    crashed = []

    def crash(when, step):
        if f"{when} {step}" == place and not crashed:
            crashed.append(step)
            running.pipeline._spread = not spread
            crm("UPDATE crm.users SET name = 'after'", "DELETE FROM crm.users WHERE id < 10")
            raise Crashed

    query = "SELECT u.name, count(*) AS n FROM t JOIN users u ON t.k = u.id GROUP BY u.name"
    how = {"spread": spread, "replay": True, "point": crash}
    running = Running(postgres.url, query, {"k": "INTEGER"}, **how)
    assert running.rows(*({"k": n % 25} for n in range(100))) == [{"name": "before", "n": 80}]
    assert crashed


def test_a_value_that_does_not_fit_its_column_is_a_dead_letter(postgres, crm):
    crm(
        "CREATE TABLE crm.users (id integer, v text)",
        "INSERT INTO crm.users VALUES (1, 'x'), (2, '7')",
    )
    about = {"columns": {"id": "INTEGER", "v": "INTEGER"}}
    query = "SELECT t.k, u.v FROM t LEFT JOIN users u ON t.k = u.id"
    running = Running(postgres.url, query, {"k": "INTEGER"}, about)
    assert running.rows({"k": 1}, {"k": 2}, {"k": 3}) == [{"k": 2, "v": 7}, {"k": 3, "v": None}]
    assert running.done.counters["dead_letter"] == 1


def test_a_view_and_a_condition(postgres, crm):
    crm(
        "CREATE TABLE crm.people (id integer, name text, gone boolean)",
        "CREATE VIEW crm.users AS SELECT id, upper(name) AS name, gone FROM crm.people",
        "INSERT INTO crm.people VALUES (1, 'a%s', false), (2, 'b', true)",
    )
    about = {"where": "NOT gone AND name LIKE '%%S' -- not b"}
    query = "SELECT t.k, u.name FROM t LEFT JOIN users u ON t.k = u.id"
    running = Running(postgres.url, query, {"k": "INTEGER"}, about)
    assert running.rows({"k": 1}, {"k": 2}) == [{"k": 1, "name": "A%S"}, {"k": 2, "name": None}]


def test_the_database_away_and_back(postgres, crm):
    crm("CREATE TABLE crm.users (id integer, name text)", "INSERT INTO crm.users VALUES (1, 'a')")
    query = "SELECT t.k, u.name FROM t LEFT JOIN users u ON t.k = u.id"
    running = Running(postgres.url, query, {"k": "INTEGER"})
    assert running.rows({"k": 1}) == [{"k": 1, "name": "a"}]
    postgres.stop()
    try:
        with pytest.raises(SourceAway, match="looking up source 'users' failed") as raised:
            running.rows({"k": 1})
    finally:
        postgres.start()
    assert "pass-word" not in str(raised.value)
    assert running.rows({"k": 1}) == [{"k": 1, "name": "a"}]
    postgres.stop()
    postgres.start()  # and its connection ends while it waits
    assert running.rows({"k": 1}) == [{"k": 1, "name": "a"}]


def test_what_cannot_heal_says_what_to_do(postgres, crm):
    crm("CREATE TABLE crm.users (id integer, name text)")
    query = "SELECT t.k, u.name FROM t LEFT JOIN users u ON t.k = u.id"
    running = Running(postgres.url, query, {"k": "INTEGER"})
    crm("ALTER TABLE crm.users DROP COLUMN name")
    with pytest.raises(SourceUnfit):
        running.rows({"k": 1})
    crm("DROP TABLE crm.users")
    with pytest.raises(SourceUnfit, match=r"there is no table 'crm\.users'") as missing:
        Running(postgres.url, query, {"k": "INTEGER"})
    assert str(missing.value).startswith("p.yaml")
    wrong = postgres.url_of("kaflow", "wrong")
    with pytest.raises(SourceUnfit, match="authentication failed") as refused:
        Running(wrong, query, {"k": "INTEGER"})
    assert "wrong" not in str(refused.value)


def test_decimals_and_instants_as_keys(postgres, crm):
    crm(
        "CREATE TABLE crm.users (price numeric(8, 2), at timestamptz, name text)",
        "INSERT INTO crm.users VALUES (1.50, '2026-01-01 00:00:00+00', 'a')",
    )
    query = "SELECT u.name FROM t JOIN users u ON t.p = u.price AND t.at = u.at"
    columns = {"p": "DECIMAL(10,3)", "at": "TIMESTAMP WITH TIME ZONE"}
    at = datetime(2026, 1, 1, tzinfo=UTC).isoformat()
    rows = Running(postgres.url, query, columns).rows(
        {"p": float(Decimal("1.500")), "at": at}, {"p": 1.501, "at": at}
    )
    assert rows == [{"name": "a"}]
