"""Positions of another program: the tables that it has, what is read of them and written."""

import json
import sqlite3
import time
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import psycopg
import pytest

from kaflow_engine.connectors.connections import Connections
from kaflow_engine.connectors.positions.contract import offset_of
from kaflow_engine.connectors.positions.kept import KeptPositions, kept_positions
from kaflow_engine.errors import SinkError, SinkUnfit
from kaflow_engine.model.brought.positions import PositionParams

ORDERS = PositionParams(
    readers=(("shop.orders", ("orders", "orders_again")), ("shop.users", ("users",))),
    namespace="shop",
    table="sqlite",
)


class Table:
    """A table in memory."""

    def __init__(self, **data: str) -> None:
        self.data, self.writes = {("shop", key): text for key, text in data.items()}, list[Any]()

    def read(self, namespace: str, keys: Iterable[str]) -> Mapping[str, str]:
        found = ((key, self.data.get((namespace, key))) for key in keys)
        return {key: text for key, text in found if text is not None}

    def write(self, namespace: str, data: Mapping[str, str]) -> None:
        self.writes.append(sorted(data))
        self.data |= {(namespace, key): text for key, text in data.items()}


def at(offset: int) -> str:
    return json.dumps({"offset": offset, "updated_at": 1})


@pytest.mark.parametrize(
    ("data", "found"),
    [
        ({}, {}),
        ({"users:shop.users:0": at(7)}, {"shop.users": {0: 7}}),
        ({"users:shop.users:2": at(7)}, {}),  # there are two partitions
        ({"orders:shop.orders:1": at(7)}, {}),  # the other source has not read it
        (
            {"orders:shop.orders:1": at(7), "orders_again:shop.orders:1": at(5)},
            {"shop.orders": {1: 5}},
        ),
        ({"orders:shop.users:0": at(7)}, {}),
    ],
)
def test_what_is_read(data: dict[str, str], found: dict[str, dict[int, int]]) -> None:
    kept = KeptPositions(ORDERS, Table(**data))
    assert kept.read({"shop.orders": 2, "shop.users": 2}) == found


def test_what_has_not_changed_is_not_written_again() -> None:
    table = Table()
    kept = KeptPositions(ORDERS, table)
    kept.commit({"shop.orders": {0: 3}, "shop.users": {0: 1}, "another": {0: 9}})
    kept.commit({"shop.orders": {0: 3}, "shop.users": {0: 2}})
    kept.commit({"shop.orders": {0: 3}, "shop.users": {0: 2}})
    both = ["orders:shop.orders:0", "orders_again:shop.orders:0"]
    assert table.writes == [[*both, "users:shop.users:0"], ["users:shop.users:0"]]
    said = json.loads(table.data["shop", "users:shop.users:0"])
    assert said["offset"] == 2
    assert abs(said["updated_at"] / 1000 - time.time()) < 60


@pytest.mark.parametrize(
    "data", ["7", '{"offset": -1}', '{"offset": "7"}', '{"offset": true}', "{"]
)
def test_what_has_no_offset_is_an_error(data: str) -> None:
    with pytest.raises(SinkUnfit, match="'orders:t:0' of the state backend has no offset"):
        offset_of("orders:t:0", data)


def test_none_is_kept_where_no_table_is_named() -> None:
    assert kept_positions(None, Connections()) is None
    assert kept_positions(PositionParams(readers=(), group="shop"), Connections()) is None


def opened(kind: Any, connections: Connections) -> KeptPositions:
    params = PositionParams(readers=ORDERS.readers, namespace="shop", table=kind)
    found = kept_positions(params, connections)
    assert found is not None
    return found


def test_a_file_of_sqlite(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    kept = opened("sqlite", Connections())
    assert kept.read({"shop.users": 1}) == {}
    kept.commit({"shop.users": {0: 3}})
    with sqlite3.connect("state.db") as file:
        (before,) = file.execute("SELECT namespace, key, created_at FROM state").fetchall()
        file.execute("UPDATE state SET created_at = '2026-01-01 00:00:00'")
        (columns,) = file.execute(
            "SELECT group_concat(name || ' ' || type) FROM pragma_table_info('state')"
        )
    file.close()
    assert before[:2] == ("shop", "users:shop.users:0")
    assert columns == ("namespace TEXT,key TEXT,data TEXT,created_at DATETIME",)
    kept.commit({"shop.users": {0: 4}})
    assert opened("sqlite", Connections()).read({"shop.users": 1}) == {"shop.users": {0: 4}}
    with sqlite3.connect("state.db") as file:
        assert file.execute("SELECT created_at FROM state").fetchall() == [("2026-01-01 00:00:00",)]
    file.close()


def test_a_file_that_is_no_database(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("state.db").write_text("this is a text, and no database of SQLite")
    with pytest.raises(SinkUnfit, match=r"positions cannot be written in '.*state\.db'"):
        opened("sqlite", Connections()).commit({"shop.users": {0: 3}})


@pytest.mark.services
def test_a_table_of_postgres(postgres: Any) -> None:
    connections = Connections({("postgres", "postgres_sink"): {"url": postgres.url}})
    with psycopg.connect(postgres.url) as connection:
        connection.execute("DROP TABLE IF EXISTS streamling.state")
    kept = opened("postgres", connections)
    assert kept.read({"shop.users": 1}) == {}
    kept.commit({"shop.users": {0: 3}})
    with psycopg.connect(postgres.url) as connection:
        connection.execute("UPDATE streamling.state SET created_at = '2026-01-01T00:00:00Z'")
        columns = connection.execute(
            "SELECT column_name, data_type FROM information_schema.columns "
            "WHERE table_schema = 'streamling' AND table_name = 'state' ORDER BY ordinal_position"
        ).fetchall()
    assert columns == [
        *(("namespace", "text"), ("key", "text"), ("data", "jsonb")),
        ("created_at", "timestamp with time zone"),
    ]
    kept.commit({"shop.users": {0: 4}})
    assert opened("postgres", connections).read({"shop.users": 1}) == {"shop.users": {0: 4}}
    with psycopg.connect(postgres.url) as connection:
        (row,) = connection.execute(
            "SELECT namespace, key, data->>'offset', created_at::text LIKE '2026-01-01%' "
            "FROM streamling.state"
        ).fetchall()
    assert row == ("shop", "users:shop.users:0", "4", True)


def test_a_database_that_is_not_configured() -> None:
    with pytest.raises(SinkError, match="connection 'postgres_sink' of output 'state backend'"):
        opened("postgres", Connections()).read({"shop.users": 1})
