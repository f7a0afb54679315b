"""Connections to PostgreSQL: opened when they are needed, kept by a process, and their errors in
our own words."""

import os
import threading
from collections.abc import Generator, Mapping
from contextlib import contextmanager, suppress
from types import ModuleType
from typing import TYPE_CHECKING, Any

from kaflow_engine.connectors.contract import Output
from kaflow_engine.connectors.postgres.errors import PostgresAway, PostgresUnfit, is_away
from kaflow_engine.errors import KaflowError
from kaflow_engine.extras import EXTRAS

if TYPE_CHECKING:
    from psycopg import Connection

_SETTINGS: Mapping[str, Any] = {
    "connect_timeout": 10,
    "application_name": "kaflow",
    "client_encoding": "utf8",
    "keepalives_idle": 15,
    "keepalives_interval": 5,
    "keepalives_count": 4,
    "tcp_user_timeout": 60_000,
    # A process that hangs within a transaction must not hold up the run that follows it.
    "options": "-c idle_in_transaction_session_timeout=60000 -c timezone=UTC -c datestyle=ISO "
    "-c intervalstyle=postgres -c client_min_messages=warning",
}
_REFUSED = (
    "authentication failed",
    "does not exist",
    "no pg_hba.conf entry",
    "is not permitted",
    "permission denied",
)
"""Words with which a server refuses a login: the client library gives no code before that."""

_kept: dict[tuple[int, str, str], "Connection[Any]"] = {}
_one_at_a_time = threading.RLock()


def driver() -> ModuleType:
    """Return the driver.

    Raises:
        PostgresUnfit: It is not installed.
    """
    try:
        import psycopg
    except ImportError as error:
        raise PostgresUnfit(
            "outputs of type postgres need the driver psycopg, which is not installed here",
            hint=f"run {EXTRAS['postgres'].install}",
        ) from error
    return psycopg


def open_connection(output: Output) -> "Connection[Any]":
    """Open a connection of one's own.

    Raises:
        PostgresAway: The server does not answer.
        PostgresUnfit: It refuses the login, the connection is not configured, or there is no
            driver.
    """
    psycopg = driver()
    url = output.connection.get("url")
    if not url:
        raise PostgresUnfit(
            f"connection '{output.settings.get('connection')}' of output '{output.name}' is not in "
            "the configuration",
            hint="add it under postgres.connections in kaflow.yaml",
        )
    more = {key: value for key, value in output.connection.items() if key == "password"}
    with translated(output, "connecting"):
        return psycopg.connect(url, **_SETTINGS, **more, autocommit=True)


@contextmanager
def kept_connection(output: Output) -> "Generator[Connection[Any]]":
    """Give the connection of this process for an output.

    It is closed after any error: the next one begins with another.
    """
    with _one_at_a_time:
        place = (os.getpid(), output.name, output.connection.get("url", ""))
        found = _kept.get(place)
        if found is None or found.closed:
            found = _kept[place] = open_connection(output)
        try:
            yield found
        except BaseException:
            _kept.pop(place, None)
            with suppress(Exception):
                found.close()
            raise


@contextmanager
def translated(output: Output, doing: str) -> Generator[None]:
    """Raise what the driver raises as errors of our own, with what they call for."""
    psycopg = driver()
    try:
        yield
    except psycopg.Error as error:
        raise to_error(output, doing, error) from error


def to_error(output: Output, doing: str, error: Any) -> KaflowError:
    """Return an error of the driver as one of ours."""
    code, text = error.sqlstate or "", message_of(error)
    message = f"{doing} of output '{output.name}' failed: {text}"
    refused = not code and any(words in text for words in _REFUSED)
    if not refused and (not code or is_away(code)):
        return PostgresAway(message)
    return PostgresUnfit(message, hint=_hint(code))


def message_of(error: Any) -> str:
    """Return what the server said, on one line."""
    found = error.diag.message_primary or str(error)
    return " ".join(str(found).split())


def _hint(code: str) -> str | None:
    if code == "42501":
        return "grant what is missing to the user of the connection"
    if code in ("42P01", "42703", "42804", "3F000"):
        return "the table is not what it was when the run began; start the pipeline again"
    return None
