"""Files that are looked up and are away, locked, replaced, or not what a pipeline needs."""
# pyright: basic

import sqlite3
import subprocess
import sys
from contextlib import closing
from pathlib import Path

import pytest
import yaml

from kaflow_engine.errors import SourceAway, SourceError, SourceUnfit
from tests.engine.transforms.files_here import NUMBERED, QUERY, File


def test_a_file_that_vanished_and_came_back(file):
    file(NUMBERED, "INSERT INTO users VALUES (1, 'a')")
    running = file.running(QUERY, {"k": "INTEGER"})
    assert running.rows({"k": 1}) == [{"k": 1, "name": "a"}]
    elsewhere = file.path.rename(file.path.with_suffix(".new"))
    with pytest.raises(SourceAway, match="looking up source 'users' failed: there is no file"):
        running.rows({"k": 1})
    elsewhere.rename(file.path)
    assert running.rows({"k": 1}) == [{"k": 1, "name": "a"}]


def test_a_file_that_another_one_replaces(file):
    file(NUMBERED, "INSERT INTO users VALUES (1, 'a')")
    running = file.running(QUERY, {"k": "INTEGER"})
    assert running.rows({"k": 1}) == [{"k": 1, "name": "a"}]
    new = File(file.kind, file.path.with_suffix(".new"))
    new(NUMBERED, "INSERT INTO users VALUES (1, 'b')")
    new.path.rename(file.path)
    assert running.rows({"k": 1}) == [{"k": 1, "name": "b"}]


def test_nothing_can_be_written_or_read_elsewhere(tmp_path):
    other = tmp_path / "secret.csv"
    other.write_text("1\n")
    file = File("duckdb", tmp_path / "users.db")
    file(NUMBERED)
    for condition, why in (
        (f"id IN (SELECT column0 FROM read_csv('{other}'))", "file system operations are disabled"),
        ("true); DELETE FROM users; SELECT (1", "read-only"),
    ):
        with pytest.raises(SourceUnfit, match=why):
            file.running(QUERY, {"k": "INTEGER"}, {"where": condition})


def test_a_file_that_another_process_writes(tmp_path):
    file = File("duckdb", tmp_path / "users.db")
    file(NUMBERED, "INSERT INTO users VALUES (1, 'a')")
    running = file.running(QUERY, {"k": "INTEGER"})
    code = (
        "import duckdb, sys\n"
        f"connection = duckdb.connect({str(file.path)!r})\n"
        "print('open', flush=True)\n"
        "sys.stdin.read()"
    )
    with subprocess.Popen(
        [sys.executable, "-c", code], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as writer:
        assert writer.stdout.readline() == "open\n"
        with pytest.raises(
            SourceAway, match=f"another process .{writer.pid}. has .* open to write"
        ):
            running.rows({"k": 1})
        writer.stdin.close()
    assert running.rows({"k": 1}) == [{"k": 1, "name": "a"}]


def test_a_file_whose_writer_was_killed(tmp_path):
    file = File("duckdb", tmp_path / "users.db")
    code = (
        "import duckdb, os\n"
        f"connection = duckdb.connect({str(file.path)!r})\n"
        f"connection.execute({NUMBERED!r})\n"
        "connection.execute(\"INSERT INTO users VALUES (1, 'a')\")\n"
        "os._exit(0)"
    )
    subprocess.run([sys.executable, "-c", code], check=True)
    assert (tmp_path / "users.db.wal").exists()
    assert file.running(QUERY, {"k": "INTEGER"}).rows({"k": 1}) == [{"k": 1, "name": "a"}]


def test_a_lock_that_another_connection_holds(tmp_path, monkeypatch):
    monkeypatch.setattr("kaflow_engine.connectors.sqlite.attached._WAIT", 0)
    file = File("sqlite", tmp_path / "users.db")
    file(NUMBERED, "INSERT INTO users VALUES (1, 'a')")
    running = file.running(QUERY, {"k": "INTEGER"})
    with closing(sqlite3.connect(file.path, isolation_level=None)) as writer:
        writer.execute("BEGIN EXCLUSIVE")
        with pytest.raises(SourceAway, match="database is locked"):
            running.rows({"k": 1})
        writer.execute("COMMIT")
    assert running.rows({"k": 1}) == [{"k": 1, "name": "a"}]


def test_a_write_ahead_log_of_sqlite(tmp_path):
    file = File("sqlite", tmp_path / "users.db")
    file("PRAGMA journal_mode = WAL", NUMBERED)
    running = file.running(QUERY, {"k": "INTEGER"})
    with closing(sqlite3.connect(file.path, isolation_level=None)) as writer:
        writer.execute("BEGIN IMMEDIATE")
        writer.execute("INSERT INTO users VALUES (1, 'a')")
        assert running.rows({"k": 1}) == [{"k": 1, "name": None}]
        writer.execute("COMMIT")
        assert running.rows({"k": 1}) == [{"k": 1, "name": "a"}]


def test_a_table_that_changed_stops_the_pipeline(file):
    file(NUMBERED)
    running = file.running(QUERY, {"k": "INTEGER"})
    file("ALTER TABLE users DROP COLUMN name")
    with pytest.raises(
        SourceUnfit, match="column 'name' of table 'users' is gone, and was VARCHAR"
    ):
        running.rows({"k": 1})


ERRORS = Path(__file__).parents[2] / "fixtures" / "errors" / "attached_files.yaml"


@pytest.mark.parametrize(
    "row", [pytest.param(r, id=r["title"]) for r in yaml.safe_load(ERRORS.read_text())]
)
def test_what_cannot_be_looked_up_says_what_to_do(tmp_path, monkeypatch, row):
    monkeypatch.chdir(tmp_path)
    path = tmp_path / "users.db"
    file = File(row["type"], path)
    if "bytes" in row:
        path.write_bytes(row["bytes"].encode())
    elif "folder" in row:
        path.mkdir()
    elif "file" in row:
        file(*row["file"])
    with pytest.raises(SourceError) as raised:
        file.running(QUERY, {"k": "INTEGER"}, row.get("about", {}))
    assert str(raised.value).replace(str(path), "/users.db") == row["error"]
    assert (raised.value.outage == "retry") == row.get("may_heal", False)
