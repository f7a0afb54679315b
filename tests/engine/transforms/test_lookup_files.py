"""Look-ups in files of SQLite and DuckDB: equal to SQL over the same rows, one query for the values
of a batch, and the same again when a batch runs again."""
# pyright: basic

import json
import sqlite3
from collections import Counter
from pathlib import Path

import duckdb
import pytest

from kaflow_engine.connectors.duckdb.attached import DuckDBTable
from kaflow_engine.connectors.sqlite.attached import SQLiteTable
from kaflow_engine.model.columns import Column
from kaflow_engine.model.config import Config
from kaflow_engine.model.pipelines.loader import load_pipeline
from kaflow_engine.runtime.planning.columns import resolve_columns
from kaflow_engine.testing.local.world import Crashed
from tests.engine.transforms.files_here import NUMBERED, QUERY, File

pytestmark = pytest.mark.slow

TABLES = {"sqlite": SQLiteTable, "duckdb": DuckDBTable}


@pytest.fixture
def asked(file, monkeypatch):
    """The queries that were sent: of each how many values it had."""
    found = []
    before = TABLES[file.kind].find

    def counted(self, wanted, on, keys, **how):
        found.append(len(keys))
        return before(self, wanted, on, keys, **how)

    monkeypatch.setattr(TABLES[file.kind], "find", counted)
    return found


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
def test_equals_sql_over_the_same_rows(file, join, kind):
    people = [(n % 7, f"n{n % 3}", n) for n in range(12)] + [(None, "n0", 20), (3, None, 21)]
    people += [(1, "N1", 22)]
    file.fill(people)
    given = [
        {"n": n, "k": k, "s": f"n{n % 4}", "name": f"n{n % 5}"}
        for n, k in enumerate([0, 1, 2, 3, 3, 9, None, 1.5 if kind == "DOUBLE" else 5, 10**9])
    ]
    columns = {"n": "INTEGER", "k": kind, "s": "VARCHAR", "name": "VARCHAR"}
    query = (
        f"SELECT t.n, u.number, u.name AS called FROM t {join} WHERE u.number IS DISTINCT FROM 4"
    )
    found = file.running(query, columns).rows(*given)
    with duckdb.connect() as twin:
        twin.execute("CREATE TABLE users (id INTEGER, name VARCHAR, number INTEGER)")
        twin.executemany("INSERT INTO users VALUES (?, ?, ?)", people)
        twin.execute(f"CREATE TABLE t (n INTEGER, k {kind}, s VARCHAR, name VARCHAR)")
        twin.executemany("INSERT INTO t VALUES (?, ?, ?, ?)", [[*row.values()] for row in given])
        wanted = twin.execute(f"SELECT to_json(x) FROM ({query}) x").fetchall()
    texts = Counter(json.dumps(row) for row in found)
    assert texts == Counter(json.dumps(json.loads(text)) for (text,) in wanted)


def test_a_text_that_no_number_equals_finds_nothing(file):
    file(NUMBERED, "INSERT INTO users VALUES (1, 'a')")
    running = file.running(QUERY, {"k": "VARCHAR"})
    rows = running.rows({"k": "1"}, {"k": "x"}, {"k": "99999999999"}, {"k": "' OR 1=1"})
    assert [row["name"] for row in rows] == ["a", None, None, None]


def test_one_query_for_the_values_of_a_batch(file, asked):
    file.fill([(n, f"n{n}", n) for n in range(1000)])
    query = "SELECT t.k, u.name FROM t JOIN users u ON t.k = u.id"
    running = file.running(query, {"k": "INTEGER"})
    rows = running.rows(*({"k": n % 1100} for n in range(5000)))
    assert asked == [1100]
    assert Counter(row["name"] for row in rows) == Counter(
        f"n{n % 1100}" for n in range(5000) if n % 1100 < 1000
    )


def test_more_values_than_one_query_asks_for(file, asked):
    file.fill([(n, f"n{n}", n) for n in range(0, 12_000, 7)])
    query = "SELECT t.k, u.number FROM t JOIN users u ON t.k = u.id"
    rows = file.running(query, {"k": "INTEGER"}).rows(*({"k": n} for n in range(12_000)))
    assert asked == [10_000, 2_000]
    assert sorted(row["k"] for row in rows) == [*range(0, 12_000, 7)]
    assert all(row["k"] == row["number"] for row in rows)


def test_an_index_is_used(tmp_path):
    file = File("sqlite", tmp_path / "users.db")
    file.fill([(1, "a", 1)])
    file("CREATE INDEX by_id ON users (id)")
    plans = []

    class Explaining(sqlite3.Connection):
        def execute(self, sql, *values):
            if sql.startswith("SELECT _kaflow"):
                plans.extend(super().execute(f"EXPLAIN QUERY PLAN {sql}").fetchall())
            return super().execute(sql, *values)

    running = file.running(QUERY, {"k": "INTEGER"})
    with pytest.MonkeyPatch.context() as patch:
        opened = sqlite3.connect
        patch.setattr(sqlite3, "connect", lambda *a, **k: opened(*a, **k, factory=Explaining))
        running.rows({"k": 1})
    assert any("USING INDEX by_id (id=?)" in plan[3] for plan in plans), plans


def test_a_table_as_a_set(file, asked):
    file.fill([(1, "a", 1), (1, "a", 2), (2, "b", 3)])
    query = "SELECT *, dynamic_table_check('known', k) AS known FROM t"
    known = {"known": {"type": "dynamic_table", "from": "users", "key": "id"}}
    running = file.running(query, {"k": "INTEGER"}, relations=known)
    assert running.rows({"k": 1}, {"k": 3}, {"k": None}) == [
        {"k": 1, "known": True},
        {"k": 3, "known": False},
        {"k": None, "known": None},
    ]
    assert asked == [2]


def test_what_is_inserted_is_seen_at_once_or_after_refresh(file, monkeypatch):
    file(NUMBERED)
    at_once = file.running(QUERY, {"k": "INTEGER"})
    now = [1000.0]
    monkeypatch.setattr("kaflow_engine.transforms.lookup.lookup.monotonic", lambda: now[0])
    later = file.running(QUERY, {"k": "INTEGER"}, about={"refresh": "5s"})
    assert [at_once.rows({"k": 1})[0]["name"], later.rows({"k": 1})[0]["name"]] == [None, None]
    file("INSERT INTO users VALUES (1, 'a')")
    now[0] += 4.9
    assert later.rows({"k": 1})[0]["name"] is None
    now[0] += 0.2
    assert [at_once.rows({"k": 1})[0]["name"], later.rows({"k": 1})[0]["name"]] == ["a", "a"]


@pytest.mark.parametrize("place", ["after changes_written", "after delivered"])
def test_a_batch_that_runs_again_is_the_same(file, place):
    file.fill([(n, "before", n) for n in range(20)])
    crashed = []

    def crash(when, step):
        if f"{when} {step}" == place and not crashed:
            crashed.append(step)
            file("UPDATE users SET name = 'after'", "DELETE FROM users WHERE id < 10")
            raise Crashed

    query = "SELECT u.name, count(*) AS n FROM t JOIN users u ON t.k = u.id GROUP BY u.name"
    running = file.running(query, {"k": "INTEGER"}, replay=True, point=crash)
    assert running.rows(*({"k": n % 25} for n in range(100))) == [{"name": "before", "n": 80}]
    assert crashed


def test_a_view_and_a_condition(file):
    file(
        "CREATE TABLE people (id integer, name text, gone boolean)",
        "CREATE VIEW users AS SELECT id, upper(name) AS name, gone FROM people",
        "INSERT INTO people VALUES (1, 'a%s', false), (2, 'b', true)",
    )
    columns = {"id": "BIGINT", "name": "VARCHAR"}
    about = {"where": "NOT gone AND users.name LIKE '%S' -- not b", "columns": columns}
    running = file.running(QUERY, {"k": "INTEGER"}, about)
    assert running.rows({"k": 1}, {"k": 2}) == [{"k": 1, "name": "A%S"}, {"k": 2, "name": None}]


def test_a_table_of_a_schema(tmp_path):
    file = File("duckdb", tmp_path / "users.db")
    file(
        "CREATE SCHEMA crm",
        "CREATE TABLE crm.users (id INTEGER, name VARCHAR)",
        "INSERT INTO crm.users VALUES (1, 'a')",
    )
    about = {"table_name": "crm.users", "where": "crm.users.id > 0"}
    assert file.running(QUERY, {"k": "INTEGER"}, about).rows({"k": 1}) == [{"k": 1, "name": "a"}]


def test_names_with_signs(file):
    file(
        'CREATE TABLE "users" ("pct%s ""?" integer, "select" text)',
        "INSERT INTO users VALUES (1, 'a')",
    )
    query = 'SELECT t.k, u."select" AS s FROM t LEFT JOIN users u ON t.k = u."pct%s ""?"'
    assert file.running(query, {"k": "INTEGER"}).rows({"k": 1}) == [{"k": 1, "s": "a"}]


def test_a_path_counts_from_the_folder_of_the_pipeline_file(tmp_path, monkeypatch):
    folder = tmp_path / "pipelines"
    folder.mkdir()
    File("sqlite", folder / "users.db")(NUMBERED)
    said = {"type": "sqlite", "path": "users.db", "table_name": "users", "attached": True}
    text = {"name": "p", "query": QUERY, "output": {"topic": "o"}, "sources": {"users": said}}
    (folder / "p.yaml").write_text(json.dumps(text))
    monkeypatch.chdir(tmp_path)
    spec = load_pipeline(Path("pipelines/p.yaml"), {})
    found = resolve_columns(spec, Config(), ["users"])
    assert found == {"users": (Column("id", "BIGINT"), Column("name", "VARCHAR"))}
