"""Tables of databases that are read in pages, over the servers that tests have."""
# pyright: basic

import json
from pathlib import Path

import psycopg

from kaflow_engine.connectors.sources.contract import SourcePlace
from kaflow_engine.connectors.sources.kinds import source_kind
from kaflow_engine.flow.origins.databases import ClickHouseParams, PostgresParams
from kaflow_engine.formats.json.decode import decode_json
from kaflow_engine.model.columns import Column
from kaflow_engine.model.outputs.connection_specs import ClickHouseConnection, PostgresConnection
from kaflow_engine.state.storage.store import LocalStore

NOW = 1_795_296_000_000


class PostgresHere:
    """A real server."""

    def __init__(self, server):
        self.server = server
        self.connection = dict(PostgresConnection(url=server.url).settings)

    def run(self, text):
        with psycopg.connect(self.server.url, autocommit=True) as connection:
            connection.execute(text)

    def numbers(self, table, numbers):
        """Create a table of numbers."""
        self.run(f"CREATE TABLE {table} (n bigint PRIMARY KEY, v text)")
        self.put(table, numbers)

    def put(self, table, numbers):
        rows = ", ".join(f"({n}, 'v{n}')" for n in numbers)
        if rows:
            self.run(f"INSERT INTO {table} VALUES {rows}")

    def change(self, table, n):
        self.run(f"UPDATE {table} SET v = 'changed' WHERE n = {n}")

    def params(self, table, **about):
        shared = {"connection": "c", "where": None, "key": (), "page_size": 3, "columns": ()}
        return PostgresParams(table=table, **{**shared, **about})


class ClickHouseHere:
    """Its engine, behind a few lines of HTTP."""

    def __init__(self, server):
        self.server = server
        self.connection = dict(ClickHouseConnection(**server.connection).settings)

    def run(self, text):
        self.server.ask(text)

    def numbers(self, table, numbers):
        """Create a table of numbers."""
        self.run(f"CREATE TABLE {table} (n Int64, v String) ENGINE = MergeTree ORDER BY n")
        self.put(table, numbers)

    def put(self, table, numbers):
        rows = ", ".join(f"({n}, 'v{n}')" for n in numbers)
        if rows:
            self.run(f"INSERT INTO {table} VALUES {rows}")

    def change(self, table, n):
        wait = "SETTINGS mutations_sync = 1"
        self.run(f"ALTER TABLE {table} UPDATE v = 'changed' WHERE n = {n} {wait}")

    def params(self, table, **about):
        shared = {"connection": "c", "where": None, "page_size": 3, "columns": ()}
        return ClickHouseParams(table=table, **{**shared, **about})


def place_of(folder: Path, connection, **about):
    return SourcePlace(
        name="s",
        store=LocalStore(folder),
        journal=folder,
        clock=lambda: NOW,
        connection=connection,
        **about,
    )


def opened(database, params, folder, **about):
    place = place_of(folder, database.connection, **about)
    return source_kind(params.type).open(params, place)


def read_on(source):
    """Read a source to its end, batch by batch, as a run does; return the values."""
    found, at = [], 0
    while not source.bounded or at < source.latest()[0]:
        end = source.latest()[0]
        found += source.read({0: at}, {0: end})["value"].to_pylist()
        at = end
        source.forget({0: at}, NOW)
    return [json.loads(value) for value in found]


def decoded(database, params, folder):
    """Return the columns of a table, its rows as queries see them, and values that are none."""
    columns = source_kind(params.type).sample(params, None, database.connection)
    source = opened(database, params, folder)
    found = source.read({0: 0}, source.latest())
    values = decode_json(found["value"], columns)
    return columns, values.table.to_pylist(), values.bad


def table_with_lines(kind, request):
    """Return a table with the records of the laws of sources, and how its server is reached."""
    found = PostgresHere if kind == "postgres" else ClickHouseHere
    here, table = found(request.getfixturevalue(kind)), request.getfixturevalue("unique")
    end = "" if kind == "postgres" else "ENGINE = MergeTree ORDER BY place"
    a = "a int, PRIMARY KEY (place)" if kind == "postgres" else "a Nullable(Int32)"
    here.run(f"CREATE TABLE {table} (place int, {a}) {end}")
    here.run(f"INSERT INTO {table} VALUES (0, 1), (1, 2), (2, NULL), (3, 4), (4, 5)")
    declared = (Column("a", "INTEGER"),)
    params = here.params(table, where="place < 4", page_size=None, columns=declared)
    return params, here.connection
