"""Connections to DuckDB for statements of authors: what they may touch is what the configuration
allows, and nothing is downloaded."""

import json
from collections.abc import Generator
from contextlib import contextmanager

import duckdb

from kaflow_engine.connectors.command.errors import CommandAway, CommandUnfit
from kaflow_engine.connectors.contract import Output
from kaflow_engine.duck.queries import SETTINGS
from kaflow_engine.duck.quoting import literal
from kaflow_engine.errors import KaflowError

_CONFLICT = "conflict"
"""A word of transactions that lost to another one, which may be tried again."""


@contextmanager
def opened(output: Output) -> Generator[duckdb.DuckDBPyConnection]:
    """Open a database in memory, run what the connection sets up, and close the door behind it.

    It lasts for a batch, so that between batches other programs can open the files of databases.

    Raises:
        CommandAway: A database is in use.
        CommandUnfit: The connection is not configured, or cannot be set up.
    """
    about = output.connection
    if not about:
        raise CommandUnfit(
            f"connection '{output.settings.get('connection')}' of output '{output.name}' is not in "
            "the configuration",
            hint="add it under command.connections in kaflow.yaml",
        )
    connection = duckdb.connect(config=dict(SETTINGS))
    try:
        with translated(output, "setting up the connection"):
            connection.execute("SET GLOBAL TimeZone = 'UTC'")
            if about["setup"]:
                connection.execute(about["setup"])
            folders = ", ".join(literal(folder) for folder in json.loads(about["folders"]))
            connection.execute(f"SET allowed_directories = [{folders}]")
            # what is attached stays open; all else is files of those folders
            connection.execute("SET enable_external_access = false")
            connection.execute("SET lock_configuration = true")
        yield connection
    finally:
        connection.close()


@contextmanager
def translated(output: Output, doing: str) -> Generator[None]:
    """Raise what DuckDB raises as errors of our own, with what they call for."""
    try:
        yield
    except duckdb.Error as error:
        raise _ours(output, doing, error) from error


def _ours(output: Output, doing: str, error: duckdb.Error) -> KaflowError:
    said = str(error).strip().splitlines()[0] if str(error).strip() else type(error).__name__
    message = f"{doing} of output '{output.name}' failed: {said}"
    # a file that another process has locked, a full disk, a mount that is away
    if isinstance(error, duckdb.IOException):
        return CommandAway(message)
    if isinstance(error, duckdb.TransactionException) and _CONFLICT in said.lower():
        return CommandAway(message)
    return CommandUnfit(message, hint=_hint(error))


def _hint(error: duckdb.Error) -> str | None:
    if isinstance(error, duckdb.PermissionException):
        return "add the folder to 'folders' of the connection in the configuration"
    if isinstance(error, duckdb.TransactionException):
        return "the ledger and what the statements write must be in the same database"
    if isinstance(error, duckdb.ConstraintException):
        return (
            "a batch may hold several changes of one key: take the one with the highest _row, or "
            "write coalesce: batch"
        )
    return None
