"""Values of every type in files that are looked up, and values that their rows are found by."""
# pyright: basic

import pytest

from tests.engine.transforms.files_here import QUERY, File

VALUES = {
    "sqlite": (
        "CREATE TABLE users (id BIGINT, name VARCHAR(20), paid NUMERIC(20, 4), part REAL, "
        "at DATETIME, day DATE, raw BLOB, doc JSON, yes BOOLEAN)",
        "INSERT INTO users VALUES (1, 'a\n%\\\"ü', 1234567.5678, 0.5, "
        "'2026-01-02 03:04:05.678901', '2026-02-03', x'00ff', '{\"a\": [1, null]}', 1)",
        {
            "id": 1,
            "name": 'a\n%\\"ü',
            "paid": 1234567.5678,
            "part": 0.5,
            "at": "2026-01-02T03:04:05.678901Z",
            "day": "2026-02-03",
            "raw": "AP8=",
            "doc": {"a": [1, None]},
            "yes": True,
        },
    ),
    "duckdb": (
        "CREATE TYPE mood AS ENUM ('sad', 'ok'); CREATE TABLE users (id BIGINT, name VARCHAR, "
        'paid DECIMAL(20, 4), part FLOAT, "at" TIMESTAMP, seen TIMESTAMP WITH TIME ZONE, day DATE, '
        "tags VARCHAR[], three INTEGER[3], raw BLOB, doc JSON, u UUID, feels mood, yes BOOLEAN, "
        "s STRUCT(a INTEGER, b BLOB), m MAP(VARCHAR, INTEGER), gap INTERVAL)",
        "INSERT INTO users VALUES (1, 'a\n%\\\"ü', 12345678901234.5678, 0.1, "
        "'2026-01-02 03:04:05.678901', '2026-01-02 03:04:05+02', '2026-02-03', ['a', NULL, 'b'], "
        "[1, 2, 3], '\\x00\\xFF'::BLOB, '{\"a\": [1, null]}', "
        "'00000000-0000-0000-0000-00000000000a', 'ok', true, {'a': 1, 'b': '\\x01'::BLOB}, "
        "MAP {'x': 1}, INTERVAL 1 MONTH)",
        {
            "id": 1,
            "name": 'a\n%\\"ü',
            "paid": 12345678901234.5678,
            "part": 0.1,
            "at": "2026-01-02T03:04:05.678901Z",
            "seen": "2026-01-02T01:04:05Z",
            "day": "2026-02-03",
            "tags": ["a", None, "b"],
            "three": [1, 2, 3],
            "raw": "AP8=",
            "doc": {"a": [1, None]},
            "u": "00000000-0000-0000-0000-00000000000a",
            "feels": "ok",
            "yes": True,
            "s": {"a": 1, "b": "AQ=="},
            "m": {"x": 1},
            "gap": "1 month",
        },
    ),
}


@pytest.mark.parametrize("kind", VALUES)
def test_values_of_every_type_come_as_they_are(tmp_path, kind):
    file = File(kind, tmp_path / "users.db")
    create, insert, wanted = VALUES[kind]
    file(create, insert, "INSERT INTO users (id) VALUES (2)")
    query = "SELECT u.* FROM t LEFT JOIN users u ON t.k = u.id"
    one, nulls, none = file.running(query, {"k": "BIGINT"}).rows({"k": 1}, {"k": 2}, {"k": 3})
    assert one == wanted
    assert nulls == {**dict.fromkeys(one), "id": 2}
    assert none == dict.fromkeys(one)


KEYS = [  # declared there, stored, declared here, type of the other side, value, whether it equals
    ("sqlite", "TEXT", "'7'", "INTEGER", "INTEGER", 7, True),
    ("sqlite", "TEXT", "'7'", "VARCHAR", "VARCHAR", "07", False),
    ("sqlite", "INTEGER", "7", "VARCHAR", "VARCHAR", "7", True),
    ("sqlite", "INTEGER", "7", "VARCHAR", "VARCHAR", "07", False),
    ("sqlite", "", "7", "BIGINT", "BIGINT", 7, True),
    ("sqlite", "", "'7'", "VARCHAR", "VARCHAR", "7", True),
    ("sqlite", "TEXT COLLATE NOCASE", "'A'", None, "VARCHAR", "a", False),
    ("sqlite", "TEXT COLLATE NOCASE", "'A'", None, "VARCHAR", "A", True),
    ("sqlite", "DECIMAL(8,2)", "1.5", None, "DECIMAL(10,3)", 1.5, True),
    ("sqlite", "DECIMAL(8,2)", "1.5", None, "DECIMAL(10,3)", 1.501, False),
    ("sqlite", "DECIMAL(18,0)", "9007199254740993", None, "BIGINT", 9007199254740993, True),
    ("sqlite", "REAL", "0.1", None, "DOUBLE", 0.1, True),
    ("sqlite", "BOOLEAN", "1", None, "BOOLEAN", True, True),
    ("sqlite", "BOOLEAN", "0", None, "BOOLEAN", True, False),
    ("sqlite", "BIGINT", "9223372036854775807", None, "HUGEINT", 9223372036854775807, True),
    ("duckdb", "DECIMAL(8,2)", "1.5", None, "DECIMAL(10,3)", 1.5, True),
    ("duckdb", "DATE", "'2026-01-02'", None, "DATE", "2026-01-02", True),
    (
        "duckdb",
        "TIMESTAMP_S",
        "'2026-01-02 03:04:05'",
        None,
        "TIMESTAMP",
        "2026-01-02T03:04:05Z",
        True,
    ),
    (
        "duckdb",
        "TIMESTAMP WITH TIME ZONE",
        "'2026-01-02 03:04:05+02'",
        None,
        "TIMESTAMP WITH TIME ZONE",
        "2026-01-02T01:04:05Z",
        True,
    ),
    ("duckdb", "ENUM('a', 'b')", "'a'", None, "VARCHAR", "a", True),
    ("duckdb", "ENUM('a', 'b')", "'a'", None, "VARCHAR", "c", False),
    (
        "duckdb",
        "UUID",
        "'00000000-0000-0000-0000-00000000000a'",
        None,
        "VARCHAR",
        "00000000-0000-0000-0000-00000000000A",
        True,
    ),
    ("duckdb", "INTEGER", "7", "VARCHAR", "VARCHAR", "x", False),
    ("duckdb", "INTEGER", "7", "VARCHAR", "VARCHAR", "7", True),
    ("duckdb", "BIT", "'0101'", "VARCHAR", "VARCHAR", "0101", True),
    ("duckdb", "HUGEINT", "17", None, "HUGEINT", 17, True),
    ("duckdb", "FLOAT", "0.1", None, "FLOAT", 0.1, True),
]


@pytest.mark.parametrize(("kind", "there", "stored", "here", "outer", "value", "equal"), KEYS)
def test_values_that_rows_are_found_by(tmp_path, kind, there, stored, here, outer, value, equal):
    file = File(kind, tmp_path / "users.db")
    file(f"CREATE TABLE users (id {there}, name TEXT)", f"INSERT INTO users VALUES ({stored}, 'a')")
    about = {"columns": {"id": here, "name": "VARCHAR"}} if here else {}
    rows = file.running(QUERY, {"k": outer}, about).rows({"k": value}, {"k": None})
    assert [row["name"] for row in rows] == ["a" if equal else None, None]


WRONG = [
    ("sqlite", "TEXT", "INTEGER", "'x'"),
    ("sqlite", "BOOLEAN", "BOOLEAN", "2"),
    ("sqlite", "REAL", "DOUBLE", "9e999"),
    ("sqlite", "INTEGER", "BIGINT", "1.5"),
    ("duckdb", "VARCHAR", "INTEGER", "'x'"),
    ("duckdb", "DOUBLE", "DOUBLE", "'nan'"),
]


@pytest.mark.parametrize(("kind", "there", "here", "stored"), WRONG)
def test_a_value_that_does_not_fit_its_column_is_a_dead_letter(tmp_path, kind, there, here, stored):
    file = File(kind, tmp_path / "users.db")
    file(
        f"CREATE TABLE users (id INTEGER, v {there})",
        f"INSERT INTO users VALUES (1, {stored}), (2, NULL)",
    )
    about = {"columns": {"id": "INTEGER", "v": here}}
    query = "SELECT t.k, u.v FROM t LEFT JOIN users u ON t.k = u.id"
    running = file.running(query, {"k": "INTEGER"}, about)
    assert running.rows({"k": 1}, {"k": 2}) == [{"k": 2, "v": None}]
    assert running.done.counters["dead_letter"] == 1
