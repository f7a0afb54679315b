"""Tables of databases beside DuckDB: each value as it is, and no more rows read than are needed."""
# pyright: basic

import os
import signal
import sqlite3
import subprocess
import sys

import httpx
import psycopg
import pytest

from kaflow_engine.connectors.attached.table import AttachedTable
from kaflow_engine.connectors.mysql.client import connect
from kaflow_engine.errors import SourceUnfit
from kaflow_engine.model.config import Config
from kaflow_engine.serving import tables
from kaflow_engine.serving.checks import check_serve_file
from kaflow_engine.serving.serve import serving
from tests.engine.serving.test_answers import CLOCKS

ROWS = [
    f"({n}, '{'nl' if n % 2 else 'de'}', '2026-01-{n + 1:02} 00:00:00', {n}.50)" for n in range(20)
]
FILE = """
commands: [{{name: posts, sql: "ATTACH '{where}' AS pg (TYPE {kind}, READ_ONLY)"}}]
serve:
  http: {{addr: "127.0.0.1:0"}}
  auth: {{tokens: [{{name: page, token: word-of-page}}]}}
  limits: {{timeout_seconds: 600}}
  datasets:
    - name: posts
      params:
        - {{name: lang, type: string}}
        - {{name: since, type: timestamp}}
        - {{name: least, type: integer}}
      sql: |
        SELECT id, lang, ts, amount FROM pg.{table}
        WHERE ts >= CAST(coalesce($since, TIMESTAMPTZ '2026-01-03 00:00:00Z') AS TIMESTAMP)
          AND lang = coalesce($lang, 'nl') AND $least < id AND amount * 2 > 7 ORDER BY id
    - {{name: number, sql: "SELECT count(*) AS n FROM pg.{table}"}}
"""
READS = {"sqlite": 7, "postgres": 7, "mysql": 7}
"""Rows that are read of the table: all conditions but that on `amount` are left to the database."""


def reading(kind):
    return pytest.param(kind, marks=() if kind == "sqlite" else pytest.mark.services)


@pytest.fixture
def database(request, tmp_path, unique):
    """Where a database is that has the rows, and the table that they are in."""
    kind, create = request.param, "CREATE TABLE {} (id integer, lang varchar(2), ts {}, {})"
    fill = f"INSERT INTO {{}} VALUES {', '.join(ROWS)}"
    if kind == "sqlite":
        with sqlite3.connect(tmp_path / "a.db") as found:
            found.execute(create.format("posts", "datetime", "amount decimal(9, 2)"))
            found.execute(fill.format("posts"))
        found.close()
        return kind, "a.db", "posts"
    server = request.getfixturevalue("postgres" if kind == "postgres" else "mariadb")
    texts = [create.format(f"{unique}_posts", "timestamp", "amount numeric(9, 2)")]
    texts += [fill.format(f"{unique}_posts")]
    if kind == "postgres":
        with psycopg.connect(server.url, autocommit=True) as connection:
            for text in texts:
                connection.execute(text)
        return kind, server.url, f"public.{unique}_posts"
    texts = ["SET SESSION TRANSACTION READ WRITE", *texts]
    with connect({"url": server.url}) as connection, connection.cursor() as cursor:
        for text in texts:
            cursor.execute(text.replace("timestamp", "datetime"))
    return kind, server.url, f"{unique}_posts"


@pytest.mark.parametrize(
    "database", [reading(k) for k in ("sqlite", "postgres", "mysql")], indirect=True
)
def test_rows_of_a_database(database, tmp_path, monkeypatch):
    kind, where, table = database
    (tmp_path / "serve.yml").write_text(FILE.format(where=where, kind=kind, table=table))
    config = Config.model_validate({"sql": {"attach": [kind]}})
    serve = check_serve_file(tmp_path / "serve.yml", config, {})
    read = []
    before = AttachedTable.rows

    def counted(self, *about):
        read.append(found := before(self, *about))
        return found

    monkeypatch.setattr(AttachedTable, "rows", counted)
    with serving(serve, CLOCKS) as place:
        header = {"Authorization": "Bearer word-of-page"}
        with httpx.Client(base_url=f"http://{place}", headers=header, timeout=600) as client:
            found = client.get("/v1/datasets/posts?least=5").json()
            number = client.get("/v1/datasets/number").json()
    assert found["rows"] == [
        {"id": n, "lang": "nl", "ts": f"2026-01-{n + 1:02}T00:00:00", "amount": f"{n}.50"}
        for n in range(7, 20, 2)
    ]
    assert number["rows"] == [{"n": 20}]
    assert [len(each) for each in read] == [READS[kind], 20]
    assert read[1][0] == '{"id":0}'


def test_a_table_with_too_many_rows(tmp_path, monkeypatch):
    with sqlite3.connect(tmp_path / "a.db") as found:
        found.execute("CREATE TABLE posts (id integer, lang text, ts datetime, amount real)")
        found.execute(f"INSERT INTO posts VALUES {', '.join(ROWS)}")
    found.close()
    (tmp_path / "serve.yml").write_text(FILE.format(where="a.db", kind="sqlite", table="posts"))
    config = Config.model_validate({"sql": {"attach": ["sqlite"]}})
    serve = check_serve_file(tmp_path / "serve.yml", config, {})
    monkeypatch.setattr(tables, "MOST", 19)
    with serving(serve, CLOCKS) as place:
        header = {"Authorization": "Bearer word-of-page"}
        answer = httpx.get(f"http://{place}/v1/datasets/number", headers=header, timeout=600)
    assert (answer.status_code, answer.json()["error"]["code"]) == (422, "reads_too_much")


@pytest.mark.services
def test_a_column_without_a_type(postgres, unique, tmp_path):
    with psycopg.connect(postgres.url, autocommit=True) as connection:
        connection.execute(f"CREATE TABLE {unique}_sums (n numeric)")
    text = FILE.format(where=postgres.url, kind="postgres", table=f"{unique}_sums")
    (tmp_path / "serve.yml").write_text(text)
    config = Config.model_validate({"sql": {"attach": ["postgres"]}})
    serve = check_serve_file(tmp_path / "serve.yml", config, {})
    with pytest.raises(SourceUnfit) as raised, serving(serve, CLOCKS):
        pass
    assert str(raised.value) == (
        f"{tmp_path}/serve.yml:14: column 'n' of table '{unique}_sums', which source "
        f"'pg.{unique}_sums' reads, is numeric: there is no type for it here\n"
        "  hint: read a view, in which it is cast to a type that has so many digits, or text"
    )


@pytest.mark.services
@pytest.mark.parametrize("database", ["postgres"], indirect=True)
def test_the_command_answers_until_it_is_asked_to_stop(database, tmp_path):
    kind, where, table = database
    text = FILE.format(where=where, kind=kind, table=table)
    (tmp_path / "serve.yml").write_text(text.replace("word-of-page", "{{ SQLFLOW_SERVE_TOKEN }}"))
    command = [sys.executable, "-u", "-m", "kaflow_engine.cli.main", "serve", "serve.yml"]
    environ = {**os.environ, "SQLFLOW_SERVE_TOKEN": "word-of-page"}
    pipe = subprocess.PIPE
    with subprocess.Popen(
        [*command, "--allow", "attach=postgres"],
        stdout=pipe,
        stderr=pipe,
        text=True,
        env=environ,
        cwd=tmp_path,
    ) as running:
        first, _, last = (running.stdout.readline() for _ in range(3))
        header = {"Authorization": "Bearer word-of-page"}
        url = f"{first.strip()}?least=17&lang=nl"
        found = httpx.get(url, headers=header, timeout=600).json() if first else {}
        running.send_signal(signal.SIGTERM)
        errors = running.stderr.read()
        running.wait(60)
    assert [row["id"] for row in found["rows"]] == [19], errors
    assert last == "serving 2 data sets; Ctrl-C ends it\n"
    assert running.returncode == 0, errors
    said = "GET /v1/datasets/posts: 200 ok, token page, data set posts, grain -, 1 rows"
    (line,) = (line for line in errors.splitlines() if "datasets" in line)
    assert said in line
    assert "word-of-page" not in errors
