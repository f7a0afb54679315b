"""What is wrong with a table that is to be read: the exact words, where, and a way out."""
# pyright: basic

import json
from pathlib import Path

import pytest
import yaml

from kaflow_engine.errors import KaflowError
from kaflow_engine.model.config import Config
from kaflow_engine.model.pipelines.loader import load_pipeline
from kaflow_engine.runtime.planning.prepare import prepare
from kaflow_engine.testing.services.postgres import PASSWORD, USER
from tests.engine.connectors.database_here import ClickHouseHere, PostgresHere

pytestmark = pytest.mark.services

ROWS = Path(__file__).parents[2] / "fixtures" / "errors" / "databases.yaml"
SECRETS = (PASSWORD, "pass-word", "its-password", "wrong-password")


def said_of(row, request, folder):
    """Return what a start says of a row."""
    table, kind = request.getfixturevalue("unique"), row["kind"]
    server = request.getfixturevalue(kind)
    here = (PostgresHere if kind == "postgres" else ClickHouseHere)(server)
    for statement in row.get("setup", "").replace("{t}", table).split(";"):
        if statement:
            here.run(statement)
    about = {
        "type": kind,
        "table_name": row.get("table", table),
        "columns": {"id": "INTEGER"} if "login" in row else None,
        **row.get("about", {}),
    }
    said = {key: value for key, value in about.items() if value is not None}
    output = "{type: blackhole}"
    text = f"name: p\nquery: SELECT id FROM rows\noutput: {output}\nsources:\n"
    text += f"  rows: {json.dumps(said)}\n"
    path = folder / "p.yaml"
    path.write_text(text)
    with pytest.raises(KaflowError) as raised:
        prepare([load_pipeline(path, {})], config_for(row, server, table, folder))
    return str(raised.value).replace(table, "{t}").replace(f"{folder}/", "")


def config_for(row, server, table, folder):
    login = row.get("login")
    if login == "nowhere":
        scheme = "postgresql" if row["kind"] == "postgres" else "http"
        connection = {"url": f"{scheme}://127.0.0.1:9/"}
    elif row["kind"] == "postgres":
        users = {"wrong": (USER, "wrong-password"), "role": (table, "its-password")}
        connection = {"url": server.url_of(*users[login]) if login else server.url}
    else:
        connection = {**server.connection, **({"password": "wrong-password"} if login else {})}
    return Config.model_validate(
        {
            "state": {"rocksdb": {"path": str(folder / "state")}},
            row["kind"]: {"connections": {"default": connection}},
        }
    )


def rows():
    found = yaml.safe_load(ROWS.read_text())
    return [pytest.param(row, id=row["title"]) for row in found]


@pytest.mark.parametrize("row", rows())
def test_error(row, request, tmp_path):
    said = said_of(row, request, tmp_path)
    said = said.replace(f"port {port}", "port N") if (port := port_of(said)) else said
    assert said == row["error"]
    assert not any(secret in said for secret in SECRETS)


def port_of(text):
    """Return the port that a message names."""
    _, named, rest = text.partition(", port ")
    return rest.partition(" ")[0] if named else None
