"""The Spark session that the pipelines of a process share: a new one follows one that has ended."""
# ruff: noqa: SLF001  # pyspark has no other way to ask for its JVM, or to let go of one that is gone

import logging
import warnings
from collections.abc import Callable
from contextlib import suppress
from threading import Lock
from typing import Any, cast

from pyspark import SparkContext
from pyspark.sql import SparkSession

LOGGER = logging.getLogger("kaflow.spark")


class Sessions:
    """Gives the one session to whoever asks, from several threads."""

    def __init__(self, start: Callable[[], SparkSession]) -> None:
        """Start nothing yet.

        Args:
            start: Starts a session, in a JVM of its own where there is none.
        """
        self._start = start
        self._lock = Lock()
        self._session: SparkSession | None = None

    def get(self) -> SparkSession:
        """Return the session, started where there is none or the last one has ended.

        Raises:
            KaflowError: It cannot be started.
        """
        with self._lock:
            if self._session is not None and not is_alive(self._session):
                end_session(self._session)
                self._session = None
            if self._session is None:
                self._session = self._start()
                _print_nothing(self._session)
            return self._session

    def close(self) -> None:
        """Stop the session, if there is one; its JVM stays for the next one."""
        with self._lock:
            if self._session is not None:
                end_session(self._session)
            self._session = None


def is_alive(session: SparkSession) -> bool:
    """Tell whether a session can still be used."""
    context = cast(Any, session.sparkContext)
    if context._jsc is None or not _runs(context._gateway):
        return False
    try:
        return not context._jsc.sc().isStopped()
    except Exception:  # the JVM ends at this moment
        return False


def end_session(session: SparkSession) -> None:
    """Stop a session, or what is left of it where its JVM is gone."""
    context = cast(Any, session.sparkContext)
    if not _runs(context._gateway):
        context._jsc = None  # else it would be asked to stop
    with warnings.catch_warnings(), suppress(Exception):  # the JVM may end at this moment
        warnings.simplefilter("ignore")
        session.stop()


def living_gateway() -> Any:
    """Return the gateway to the JVM of this process, or None; of one that is gone nothing is left.

    A process has one JVM, which outlives its sessions.
    """
    known, session = cast(Any, SparkContext), cast(Any, SparkSession)
    gateway = known._gateway
    if gateway is None or _runs(gateway):
        return gateway
    if "_callback_server" in gateway.__dict__:  # any other name is looked up in the JVM
        gateway.shutdown_callback_server(raise_exception=False)
    known._gateway = known._jvm = known._active_spark_context = None
    session._instantiatedSession = session._activeSession = None
    return None


def _print_nothing(session: SparkSession) -> None:
    """Let the server of accumulators not print a stack when the JVM hangs up on it."""
    server = cast(Any, session.sparkContext)._accumulatorServer

    def log(request: object, address: object) -> None:
        LOGGER.debug("the JVM at %s hung up", address)

    if server is not None:
        server.handle_error = log


def _runs(gateway: Any) -> bool:
    process = gateway.__dict__.get("proc")  # that of spark-submit is not ours
    return process is None or process.poll() is None
