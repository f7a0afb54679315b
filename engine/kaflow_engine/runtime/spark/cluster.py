"""The Spark master: this machine, or a cluster and how to reach it."""

import logging
import re
import socket
import time
from collections.abc import Callable, Mapping
from functools import cache
from pathlib import Path
from typing import Any

from pyspark.sql import SparkSession

from kaflow_engine.flow.flow import Flow
from kaflow_engine.model.config import Config
from kaflow_engine.runtime.failures.failures import ClusterAway
from kaflow_engine.runtime.spark.master import cores, is_local
from kaflow_engine.state.storage.copy_location import OnHost

LOGGER = logging.getLogger("kaflow.spark")

_PROTECTION = (
    ("spark.authenticate",),
    ("spark.network.crypto.enabled", "spark.ssl.rpc.enabled"),  # one of them encrypts
)
_STANDALONE = re.compile(r"spark://(.+)")
_CONNECT_S = 5.0
_POLL_S = 0.1


def addresses(master: str) -> tuple[tuple[str, int], ...]:
    """Return where the masters of a standalone cluster listen; nothing for others.

    >>> addresses("spark://one:7077,two:7078"), addresses("yarn")
    ((('one', 7077), ('two', 7078)), ())
    """
    found = _STANDALONE.fullmatch(master)
    hosts = (part.rpartition(":") for part in found[1].split(",")) if found else ()
    return tuple((host, int(port)) for host, _, port in hosts if host and port.isdigit())


def require_master(master: str) -> None:
    """Make sure that a standalone master answers, for which Spark itself would wait a minute.

    Raises:
        ClusterAway: None does.
    """
    asked = addresses(master)
    if asked and not any(_answers(*address) for address in asked):
        raise ClusterAway(
            f"no Spark master answers at {master}",
            hint="start it, or check 'spark.master'; its page shows the right address",
        )


def unprotected(master: str, conf: Mapping[str, str]) -> tuple[str, ...]:
    """Return the settings that are off and keep others away from a cluster; local needs none.

    >>> unprotected("spark://host:7077", {"spark.authenticate": "true"}), unprotected("local", {})
    (('spark.network.crypto.enabled',), ())
    """
    if is_local(master):
        return ()
    return tuple(
        names[0]
        for names in _PROTECTION
        if not any(conf.get(name, "").strip().lower() == "true" for name in names)
    )


def warn_unless_protected(spark: SparkSession, master: str) -> None:
    """Warn, once in a process, where others may read and run what this cluster does."""
    if not is_local(master):
        warn_of(unprotected(master, dict(spark.sparkContext.getConf().getAll())))


@cache
def warn_of(off: tuple[str, ...]) -> None:
    """Warn of settings that are off, the first time."""
    if off:
        LOGGER.warning(
            "%s off: who reaches the ports of this cluster can read its records and passwords and "
            "run code; see 'Authentication and encryption' in the page on clusters",
            " and ".join(f"'{name}'" for name in off) + (" is" if len(off) == 1 else " are"),
        )


def await_executor(
    spark: SparkSession, master: str, seconds: float, stopped: Callable[[], bool]
) -> None:
    """Wait until a cluster has given the application an executor.

    Args:
        spark: The session.
        master: Its master; a local one needs none.
        seconds: How long.
        stopped: Asked meanwhile whether someone wants an end.

    Raises:
        ClusterAway: It has given none.
    """
    start = time.monotonic()
    while not is_local(master) and _executors(spark) == 0:
        waited = time.monotonic() - start
        if stopped() or waited > seconds:
            raise ClusterAway(
                f"{master} has given no executor after {waited:.0f} s",
                hint="check that its workers run and have room for 'spark.executor.memory' and "
                "'spark.executor.cores', and can reach 'spark.driver.host'",
            )
        time.sleep(_POLL_S)


def task_slots(master: str, spark: SparkSession) -> int:
    """Return how many tasks can run at once at this moment."""
    return cores(master) if is_local(master) else spark.sparkContext.defaultParallelism


def copies_of(config: Config, plan: Flow) -> OnHost | None:
    """Return where tasks keep RocksDB copies; None: in the state directory."""
    if is_local(config.spark.master):
        return None
    folder = config.state.rocksdb.local if plan.backfill is None else None
    return OnHost(plan.pipeline, Path(folder) if folder else None)


def _answers(host: str, port: int) -> bool:
    try:
        with socket.create_connection((host, port), _CONNECT_S):
            return True
    except OSError:
        return False


def _executors(spark: SparkSession) -> int:
    context: Any = spark.sparkContext
    # Python's own tracker knows no executors
    tracker = context._jsc.sc().statusTracker()  # noqa: SLF001  # the one way there is
    return len(tracker.getExecutorInfos()) - 1  # the driver is one of them
