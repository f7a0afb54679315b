"""Connections to PostgreSQL: opened when they are needed, kept by a process, and their errors in
our own words."""

import os
import select
import threading
from collections.abc import Callable, Generator, Mapping
from contextlib import AbstractContextManager, contextmanager, suppress
from dataclasses import dataclass
from functools import partial
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
_in_use: dict[tuple[int, str, str], threading.RLock] = {}


@dataclass(frozen=True, slots=True)
class Verdict:
    """What an error of the driver calls for."""

    text: str
    """What the server said, on one line."""
    away: bool
    """Whether trying again may help."""
    hint: str | None = None


def driver(error_class: type[KaflowError] = PostgresUnfit, what: str = "outputs") -> ModuleType:
    """Return the driver.

    Args:
        error_class: Of the error where there is none.
        what: Of type postgres; needs it.

    Raises:
        KaflowError: It is not installed; of `error_class`.
    """
    try:
        import psycopg
    except ImportError as error:
        raise error_class(
            f"{what} of type postgres need the driver psycopg, which is not installed here",
            hint=f"run {EXTRAS['postgres'].install}",
        ) from error
    return psycopg


def connect(settings: Mapping[str, str], *, reads_only: bool = False) -> "Connection[Any]":
    """Open a connection; errors are the driver's.

    Args:
        settings: Of the connection, with a `url`.
        reads_only: The server refuses whatever writes.
    """
    own = dict(_SETTINGS)
    if reads_only:
        own["options"] += " -c default_transaction_read_only=on -c standard_conforming_strings=on"
    more = {key: value for key, value in settings.items() if key == "password"}
    return driver().connect(settings["url"], **own, **more, autocommit=True)


def open_connection(output: Output) -> "Connection[Any]":
    """Open a connection of one's own.

    Raises:
        PostgresAway: The server does not answer.
        PostgresUnfit: It refuses the login, the connection is not configured, or there is no
            driver.
    """
    if not output.connection.get("url"):
        raise PostgresUnfit(
            f"connection '{output.settings.get('connection')}' of output '{output.name}' is not in "
            "the configuration",
            hint="add it under postgres.connections in kaflow.yaml",
        )
    with translated(output, "connecting"):
        return connect(output.connection)


def kept_connection(output: Output) -> "AbstractContextManager[Connection[Any]]":
    """Give the connection of this process for an output."""
    opened = partial(open_connection, output)
    return kept(f"output {output.name}", output.connection.get("url", ""), opened)


@contextmanager
def kept(
    what: str, url: str, opened: "Callable[[], Connection[Any]]"
) -> "Generator[Connection[Any]]":
    """Give the connection of this process for an output or a source.

    It is closed after any error: the next one begins with another.

    Args:
        what: Uses it.
        url: Of the database.
        opened: Opens it.
    """
    place = (os.getpid(), what, url)
    with _in_use.setdefault(place, threading.RLock()):
        found = _kept.get(place)
        if found is not None and _has_ended(found):
            found.close()
            found = None
        if found is None:
            found = _kept[place] = opened()
        try:
            yield found
        except BaseException:
            _kept.pop(place, None)
            with suppress(Exception):
                found.close()
            raise


def _has_ended(connection: "Connection[Any]") -> bool:
    """Tell whether a connection that waits is of no use: a server says nothing but that it ends."""
    if connection.closed:
        return True
    if connection.info.transaction_status != driver().pq.TransactionStatus.IDLE:
        return False  # what has it in use reads its answers
    waiting = select.poll()
    waiting.register(connection.fileno(), select.POLLIN)
    return bool(waiting.poll(0))


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
    found = verdict_on(error)
    message = f"{doing} of output '{output.name}' failed: {found.text}"
    return PostgresAway(message) if found.away else PostgresUnfit(message, hint=found.hint)


def verdict_on(error: Any) -> Verdict:
    """Return what an error of the driver calls for."""
    code, text = error.sqlstate or "", message_of(error)
    refused = not code and any(words in text for words in _REFUSED)
    if not refused and (not code or is_away(code)):
        return Verdict(text, away=True)
    return Verdict(text, away=False, hint=_hint(code))


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
