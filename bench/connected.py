"""Runs whose rows go to another system, or through one: what each needs beside the broker."""

import subprocess
import sys
from collections.abc import Callable, Generator, Mapping
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, field

import psycopg

from bench import brought, pipelines
from bench.measure.child import ROOT, environment
from kaflow_engine.testing.services.child import free_ports
from kaflow_engine.testing.services.postgres import PostgresServer
from tests.clickhouse_shim import ClickHouseShim

HANDLED = 2_000
"""Rows of a request to a handler."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Connected:
    """A run that has what it needs."""

    pipeline: Callable[[str], str]
    """Gives the file of a pipeline of this name."""
    settings: Mapping[str, str] = field(default_factory=dict[str, str])
    """Where what it needs is, as the configuration says it."""


@contextmanager
def _postgres(output: str) -> Generator[Connected]:
    with PostgresServer() as server:
        yield Connected(
            pipeline=lambda name: pipelines.writing(name, "clicks", output),
            settings={"postgres.connections.default.url": server.url},
        )


@contextmanager
def _clickhouse() -> Generator[Connected]:
    with ClickHouseShim() as server:
        yield Connected(
            pipeline=lambda name: pipelines.writing(
                name, "clicks", "{type: clickhouse, table: rows, create: true}"
            ),
            settings={
                f"clickhouse.connections.default.{name}": value
                for name, value in server.connection.items()
            },
        )


@contextmanager
def _files() -> Generator[Connected]:
    yield Connected(
        pipeline=lambda name: pipelines.writing(name, "clicks", f"{{type: files, folder: {name}}}")
    )


@contextmanager
def _script() -> Generator[Connected]:
    yield Connected(pipeline=lambda name: pipelines.scripted(name, "clicks"))


@contextmanager
def _handler() -> Generator[Connected]:
    (port,) = free_ports(1)
    command = [sys.executable, "-m", "bench.measure.answering", str(port)]
    with subprocess.Popen(
        command,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        cwd=ROOT,
        env=environment(),
    ) as server:
        assert server.stdin is not None
        assert server.stdout is not None
        server.stdout.readline()
        url = f"http://127.0.0.1:{port}/rows"
        try:
            yield Connected(pipeline=lambda name: pipelines.handled(name, "clicks", url, HANDLED))
        finally:
            server.stdin.close()


@contextmanager
def _sqlflow_counts(batch: int) -> Generator[Connected]:
    yield Connected(pipeline=lambda name: brought.counting(name, batch))


@contextmanager
def _sqlflow_users() -> Generator[Connected]:
    with PostgresServer() as server:
        with psycopg.connect(server.url, autocommit=True) as connection:
            connection.execute(_USERS)
        yield Connected(
            pipeline=lambda name: brought.looking_up(name, server.url),
            settings={"sql.attach": "postgres"},
        )


_USERS = """
    CREATE TABLE users AS
    SELECT 'u' || n AS user_id, 'Name ' || n AS name FROM generate_series(0, 199999) n;
    ALTER TABLE users ADD PRIMARY KEY (user_id);
    ANALYZE users
"""
_APPENDED = "{type: postgres, table: rows, create: true, mode: append}"
_MERGED = "{type: postgres, table: rows, create: true, mode: upsert, key: user_id}"

CONNECTED: Mapping[str, Callable[[], AbstractContextManager[Connected]]] = {
    "o": lambda: _postgres(_APPENDED),
    "p": lambda: _postgres(_MERGED),
    "q": _files,
    "r": _clickhouse,
    "s": _script,
    "t": _handler,
    "u": lambda: _sqlflow_counts(5_000),
    "v": _sqlflow_users,
    "z": lambda: _sqlflow_counts(100),
}
"""By the name of the run."""
