"""An output of type postgres over a real server, with what runs of it do."""
# pyright: basic

import psycopg

from kaflow_engine.connectors.postgres.outputs import PostgresOutlet
from tests.engine.connectors.typed_output_here import TypedOutput


class Table(TypedOutput):
    """A table; its tasks commit what they write."""

    def __init__(self, server, name, *columns, **about):
        self.server = server
        super().__init__("postgres", PostgresOutlet(), name, {"url": server.url}, *columns, **about)

    write = TypedOutput.task

    def rows(self, asked="*"):
        return run(self.server, f"SELECT {asked} FROM {self.name} ORDER BY 1")


def run(server, text):
    with psycopg.connect(server.url, autocommit=True) as connection:
        done = connection.execute(text)
        return done.fetchall() if done.description else []
