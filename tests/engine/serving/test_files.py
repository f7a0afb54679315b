"""Files that the configuration lets SQL read, and no others."""
# pyright: basic

from contextlib import chdir

import duckdb
import httpx
import pytest

from kaflow_engine.errors import SqlError
from kaflow_engine.model.config import Config
from kaflow_engine.serving.checks import check_serve_file
from kaflow_engine.serving.serve import serving
from tests.engine.serving.test_answers import CLOCKS

FILE = """
serve:
  http: {{addr: "127.0.0.1:0"}}
  auth: {{tokens: [{{name: page, token: word-of-page}}]}}
  datasets:
    - {{name: states, limits: {{timeout_seconds: 600}}, sql: "{}"}}
"""
ALLOWED = ["data/states.csv", "data/parquet"]


@pytest.fixture
def config(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "data" / "parquet").mkdir(parents=True)
    for name in ("states.csv", "secret.csv"):
        (tmp_path / "data" / name).write_text("city,state\nDelft,ZH\n")
    for number in range(2):
        file = tmp_path / "data" / "parquet" / f"{number}.parquet"
        duckdb.execute(f"COPY (SELECT {number} AS n) TO '{file}'")
    return Config.model_validate({"sql": {"read": ALLOWED}})


@pytest.mark.parametrize(
    ("sql", "rows"),
    [
        ("FROM read_csv('states.csv')", [{"city": "Delft", "state": "ZH"}]),
        ("SELECT state FROM 'states.csv'", [{"state": "ZH"}]),
        ("FROM read_parquet('parquet/*.parquet') ORDER BY n", [{"n": 0}, {"n": 1}]),
    ],
)
def test_files_are_read_from_the_folder_of_the_file(config, tmp_path, sql, rows):
    path = tmp_path / "data" / "serve.yml"
    path.write_text(FILE.format(sql))
    serve = check_serve_file(path, config, {})
    with chdir(path.parent), serving(serve, CLOCKS) as place:
        header = {"Authorization": "Bearer word-of-page"}
        answer = httpx.get(f"http://{place}/v1/datasets/states", headers=header, timeout=600)
    assert answer.json()["rows"] == rows


def test_another_file(config, tmp_path):
    path = tmp_path / "data" / "serve.yml"
    path.write_text(FILE.format("FROM read_csv('secret.csv')"))
    serve = check_serve_file(path, config, {})
    with chdir(path.parent), pytest.raises(SqlError) as raised, serving(serve, CLOCKS):
        pass
    assert "secret.csv" in raised.value.message
    assert raised.value.hint == (
        "allow it by a line in kaflow.yaml: sql: {read: [PATH]}, or by --allow read=PATH"
    )
