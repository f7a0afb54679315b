"""A JVM that is launched while pipelines are prepared, for the session that follows."""

import logging
from collections.abc import Callable
from dataclasses import dataclass, field
from threading import Lock, Thread
from typing import Any

from pyspark import SparkConf

from kaflow_engine.runtime.spark.launch import start_jvm

LOGGER = logging.getLogger("kaflow.spark")


@dataclass(slots=True)
class _Launch:
    thread: Thread | None = None
    settings: dict[str, str] = field(default_factory=dict[str, str])
    gateway: Any = None


_launch = _Launch()
_lock = Lock()


def launch_ahead(conf: Callable[[], SparkConf]) -> None:
    """Launch a JVM, while whoever calls goes on; once in a process.

    What fails is tried again by the session, which says what is wrong. The thread is waited for
    where the process ends before: its files hold settings, and go when the JVM has read them.
    """
    with _lock:
        if _launch.thread is None:
            _launch.thread = Thread(target=_run, args=(conf,), name="kaflow-launch")
            _launch.thread.start()


def take_launched(conf: SparkConf) -> Any:
    """Return the gateway of the JVM that was launched with these settings, or None.

    One with other settings is ended.
    """
    with _lock:
        if _launch.thread is None:
            return None
        _launch.thread.join()
        gateway, _launch.gateway = _launch.gateway, None
        if gateway is None or _launch.settings == dict(conf.getAll()):
            return gateway
    gateway.shutdown()
    gateway.proc.stdin.close()  # a JVM without a driver ends
    return None


def _run(conf: Callable[[], SparkConf]) -> None:
    try:
        made = conf()
        _launch.settings = dict(made.getAll())
        _launch.gateway = start_jvm(made)
    except Exception as error:
        LOGGER.debug("no JVM was launched ahead: %s", error)
