"""What a server answers over a socket: rows of `fixtures/serving/answers.yaml`, and what surrounds
them."""
# pyright: basic

import json
import logging
import shutil
import sqlite3
from datetime import UTC, datetime
from pathlib import Path

import duckdb
import httpx
import pytest
import yaml

from kaflow_engine.errors import RunError
from kaflow_engine.model.config import Config
from kaflow_engine.serving.checks import check_serve_file
from kaflow_engine.serving.serve import Clocks, serving

FIXTURES = Path(__file__).parents[2] / "fixtures" / "serving"
CONFIG = {"sql": {"attach": ["duckdb", "sqlite"]}, "secrets": {"office": "word-of-office"}}
ENVIRONMENT = {"SQLFLOW_SERVE_TOKEN": "word-of-page"}
CLOCKS = Clocks(now=lambda: datetime(2026, 1, 1, 12, tzinfo=UTC), monotonic=lambda: 0.0)
POSTS = """
CREATE TABLE posts AS
SELECT range AS id, CASE WHEN range % 2 = 0 THEN 'nl' ELSE 'de' END AS lang,
  TIMESTAMPTZ '2026-01-01 00:00:00+00' + to_minutes(range) AS ts
FROM range(1000)
"""


def rows():
    found = yaml.load((FIXTURES / "answers.yaml").read_text(), yaml.CSafeLoader)
    return [pytest.param(row, id=row["title"]) for row in found]


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("served")
    shutil.copy(FIXTURES / "serve.yml", folder)
    write_databases(folder)
    return folder


def write_databases(folder):
    with duckdb.connect(str(folder / "posts.duckdb")) as database:
        database.execute(POSTS)
    with sqlite3.connect(folder / "users.db") as users:
        users.execute("CREATE TABLE users (id INTEGER, name TEXT)")
        users.executemany("INSERT INTO users VALUES (?, ?)", [(n, f"n{n}") for n in range(10)])
    users.close()


@pytest.fixture(scope="module")
def served(folder):
    serve = check_serve_file(folder / "serve.yml", Config.model_validate(CONFIG), ENVIRONMENT)
    with (
        serving(serve, CLOCKS) as place,
        httpx.Client(base_url=f"http://{place}", timeout=600) as it,
    ):
        yield it


def has(found, wanted):
    """Tell whether something has all that is wanted of it."""
    if isinstance(wanted, dict):
        return all(key in found and has(found[key], value) for key, value in wanted.items())
    return found == wanted


@pytest.mark.parametrize("row", rows())
def test_answer(row, folder, served, caplog):
    caplog.set_level(logging.INFO, "kaflow.serve")
    headers = {"Origin": row["origin"]} if "origin" in row else {}
    token = row.get("token", "word-of-page")
    if token is not None:
        headers["Authorization"] = f"Bearer {token}"
    answer = served.request(row.get("method", "GET"), row["get"], headers=headers)
    assert answer.status_code == row.get("status", 200), answer.text
    found = answer.json() if answer.content else {}
    assert has(found, row.get("body", {})), json.dumps(found)
    for name, value in row.get("headers", {}).items():
        assert answer.headers.get(name) == value
    assert row.get("log", "").format(file=folder / "serve.yml") in caplog.text
    assert f"{row['get'].partition('?')[0]}: {answer.status_code}" in caplog.text
    assert "word-of" not in caplog.text


def test_an_answer_says_how_long_it_waited(served):
    token = {"Authorization": "Bearer word-of-page"}
    found = served.get("/v1/datasets/users?least=5&who=n7", headers=token).json()
    assert isinstance(found["queued_ms"], int)  # how long a free session takes depends on the load
    assert found["queued_ms"] >= 0


def test_what_there_is_to_ask_for(served):
    answer = served.get("/v1/datasets", headers={"Authorization": "bearer word-of-page"})
    found = {each["name"]: each for each in answer.json()["datasets"]}
    users = {"name": "least", "type": "integer"}, {"name": "who", "type": "string"}
    assert found["users"]["params"] == [*users]
    assert found["users"]["sql"].startswith("SELECT u.id, u.name, p.lang\n")
    posts = found["posts"]
    assert posts["range"] == {"since": "since", "until": "until", "default": "1d"}
    assert posts["cache"] == {"ttl_seconds": 30}
    assert {name: each["max_range"] for name, each in posts["grains"].items()} == {
        "5m": "1d",
        "1h": "1w",
    }


def test_metrics_have_the_names_of_sqlflow(served):
    served.get("/v1/datasets/by_day?grain=de", headers={"Authorization": "Bearer word-of-page"})
    text = served.get("/metrics").text
    assert 'sqlflow_serve_requests_total{code="ok",dataset="by_day",grain="de"}' in text
    assert "sqlflow_serve_sessions_total 4.0" in text


def test_others_write_to_a_file_between_requests(folder, served):
    with duckdb.connect(str(folder / "posts.duckdb")) as database:
        database.execute("CREATE TABLE other (i INTEGER)")
    token = {"Authorization": "Bearer word-of-page"}
    with duckdb.connect(str(folder / "posts.duckdb")):
        assert served.get("/v1/datasets/by_day?grain=de", headers=token).status_code == 500
    assert served.get("/v1/datasets/by_day?grain=de", headers=token).json()["rows"] == [{"n": 500}]


def test_a_port_that_is_taken(folder, served):
    text = (folder / "serve.yml").read_text()
    (folder / "again.yml").write_text(
        text.replace("127.0.0.1:0", f"127.0.0.1:{served.base_url.port}")
    )
    serve = check_serve_file(folder / "again.yml", Config.model_validate(CONFIG), ENVIRONMENT)
    with pytest.raises(RunError) as raised, serving(serve, CLOCKS):
        pass
    assert raised.value.hint == (
        "another process may listen there; set serve.http.addr to a free port"
    )
