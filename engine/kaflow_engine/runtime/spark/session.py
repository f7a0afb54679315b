"""The one place that builds a Spark session."""

import logging
import os
import re
import sys
from collections.abc import Callable, Mapping, Sequence
from importlib.resources import files
from pathlib import Path
from threading import Thread
from typing import IO, cast

from pyspark import SparkConf, SparkContext
from pyspark.java_gateway import launch_gateway  # pyright: ignore[reportUnknownVariableType]  # untyped
from pyspark.sql import SparkSession

from kaflow_engine.errors import RunError
from kaflow_engine.masking import masked
from kaflow_engine.model.config import SparkConfig
from kaflow_engine.runtime.spark.ahead import launch_ahead, take_launched
from kaflow_engine.runtime.spark.class_archive import archive_options, spark_archive
from kaflow_engine.runtime.spark.java import Java
from kaflow_engine.runtime.spark.launch import start_jvm
from kaflow_engine.runtime.spark.master import is_local
from kaflow_engine.runtime.spark.sessions import living_gateway

Jars = Callable[[], Sequence[Path]]

LOGGER = logging.getLogger("kaflow.spark")
LOCAL = "127.0.0.1"
_CHECKPOINTS = "org.apache.spark.sql.execution.streaming.checkpointing"
_OPTIONS = "spark.driver.extraJavaOptions"
_EXECUTOR_OPTIONS = "spark.executor.extraJavaOptions"
_SUBMITTED = "PYSPARK_GATEWAY_PORT"
_PYTHON = "spark.pyspark.python"
_NOISE = re.compile(r"incubator modules|log4j|Setting default log level|setLogLevel|log level to")
_STACK = re.compile(
    r"\s|Caused by: |Exception in thread (?!.*\.lang\.\w+Error)"
    r"|Traceback \(most recent call last\)|BrokenPipeError: "
)
"""Stacks, and what a thread of Java prints that ends; but for the JVM's own errors, calls raise the
same. A worker that is idle as its JVM ends may print that it cannot answer."""

SETTINGS: Mapping[str, str] = {
    "spark.app.name": "kaflow",
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    # what no one looks at fills the heap all the same
    "spark.ui.retainedJobs": "10",
    "spark.ui.retainedStages": "10",
    "spark.ui.retainedTasks": "100",
    "spark.sql.ui.retainedExecutions": "10",
    "spark.sql.streaming.ui.enabled": "false",
    # garbage that outlives young collections would fill the heap before it goes
    "spark.cleaner.periodicGC.interval": "5min",
    "spark.driver.memory": "1g",
    # FAIR breaks ties by the names of pools: with more streams than cores the last ones starve
    "spark.scheduler.mode": "FIFO",
    "spark.python.worker.reuse": "true",
    "spark.sql.adaptive.enabled": "false",
    # else tasks of frames have workers of their own, beside those of other tasks
    "spark.sql.execution.pyspark.udf.simplifiedTraceback.enabled": "false",
    "spark.sql.shuffle.partitions": "2",
    "spark.sql.session.timeZone": "UTC",
    "spark.sql.execution.arrow.maxRecordsPerBatch": "10000",
    # A limit in bytes makes Spark ask for the size of the batch after every row, which for a list
    # column takes as long as there are rows in front.
    "spark.sql.execution.arrow.maxBytesPerBatch": "2147483647",
    "spark.sql.streaming.checkpointFileManagerClass": (
        f"{_CHECKPOINTS}.FileSystemBasedCheckpointFileManager"
    ),
    "spark.sql.streaming.minBatchesToRetain": "2",
    "spark.sql.streaming.numRecentProgressUpdates": "5",
    "spark.sql.streaming.metricsEnabled": "false",
    "spark.sql.streaming.noDataMicroBatches.enabled": "false",
    "spark.sql.streaming.stopTimeout": "20s",
    "spark.kafka.consumer.cache.capacity": "256",
    # Else what a batch has freed goes back to the system, and the next one takes as long to get it
    # as to decode JSON; `keep_or_release` gives it back.
    "spark.executorEnv.MALLOC_MMAP_THRESHOLD_": "33554432",
    "spark.executorEnv.MALLOC_TRIM_THRESHOLD_": "1073741824",
    "spark.executorEnv.MIMALLOC_PURGE_DELAY": "1000",
}
"""What measurements settled; `spark.conf` of the configuration goes over it."""

ON_ONE_MACHINE: Mapping[str, str] = {
    # what stays on the machine takes longer to compress than to write
    "spark.shuffle.compress": "false",
    # between processes TCP waits 40 ms for a receipt wherever several small writes follow another
    "spark.python.unix.domain.socket.enabled": "true",
    "spark.driver.bindAddress": LOCAL,
    "spark.driver.host": LOCAL,
    # its workers need not load the engine; on a cluster it may come with the job, too late for it
    "spark.python.daemon.module": "kaflow_engine.runtime.tasks.daemon",
}
"""What goes over that where the master is local."""

ON_A_CLUSTER: Mapping[str, str] = {
    # a host that hangs holds up the stream; Spark itself would give it two to three minutes
    "spark.network.timeout": "60s",
    "spark.network.timeoutInterval": "10s",
}
"""What goes over it elsewhere."""

FIXED: Mapping[str, str] = {
    "spark.task.maxFailures": "1",
    "spark.stage.maxConsecutiveAttempts": "1",
    "spark.speculation": "false",
}
"""What no one may change: the engine recovers through its own batch log, never by retries."""


class _WithoutPy4j(logging.Filter):
    """Keeps from the root logger what py4j logs there instead of with its own."""

    def filter(self, record: logging.LogRecord) -> bool:
        if "py4j" not in Path(record.pathname).parts:
            return True
        LOGGER.debug("%s", record.getMessage(), exc_info=record.exc_info)
        return False


_ROOT = _WithoutPy4j()


def start_session(config: SparkConfig, java: Java, jars: Sequence[Path]) -> SparkSession:
    """Start Spark in this process; what its JVM prints goes to the logger `kaflow.spark`.

    Args:
        config: Master and the author's settings.
        java: The Java that runs it.
        jars: The jars of the Kafka source.
    """
    # it logs every connection, and stacks where an error says the same once
    logging.getLogger("py4j").setLevel(logging.CRITICAL)
    logging.getLogger().addFilter(_ROOT)
    known = living_gateway()
    if known is None and _SUBMITTED in os.environ:
        known = launch_gateway()
        config = as_submitted(config, jars, dict(SparkConf(_jvm=known.jvm).getAll()))
        jars = ()
    conf = driver_conf(config, java, jars)
    if known is not None:
        SparkContext._ensure_initialized(gateway=known)  # noqa: SLF001  # pyright: ignore
        return SparkSession(SparkContext.getOrCreate(conf))
    gateway = take_launched(conf) or start_jvm(conf)
    errors = cast("IO[bytes] | None", gateway.proc.stderr)
    if errors is not None:
        Thread(target=_forward, args=(errors,), name="spark-stderr", daemon=True).start()
    return SparkSession(SparkContext(conf=conf, gateway=gateway))


def start_ahead(config: SparkConfig, java: Callable[[], Java], jars: Jars) -> None:
    """Launch the JVM of a `start_session` that follows, unless there is one."""
    if living_gateway() is None and _SUBMITTED not in os.environ:
        launch_ahead(lambda: driver_conf(config, java(), jars()))


def driver_conf(config: SparkConfig, java: Java, jars: Sequence[Path]) -> SparkConf:
    """Return the settings of a driver; what its JVM finds in the environment is set."""
    os.environ["JAVA_HOME"] = str(java.home)
    os.environ["PYSPARK_DRIVER_PYTHON"] = sys.executable
    os.environ["PYSPARK_PYTHON"] = python_of_tasks(config)
    if is_local(config.master):
        os.environ.setdefault("SPARK_LOCAL_IP", LOCAL)
    conf = SparkConf(loadDefaults=False).setMaster(config.master)
    settings = session_settings(config, jars)
    options = [*archive_options(spark_archive(java)), settings[_OPTIONS]]  # own ones count
    return conf.setAll(list({**settings, _OPTIONS: " ".join(options)}.items()))


def as_submitted(
    config: SparkConfig, jars: Sequence[Path], given: Mapping[str, str]
) -> SparkConfig:
    """Return the settings for a driver that `spark-submit` has started.

    Args:
        config: Master and the author's settings, which go over what was submitted.
        jars: The jars of the Kafka source, which cannot be added to a JVM that runs.
        given: What spark-submit was given.

    Raises:
        RunError: It was given another master, or not the jars.
    """
    master = given.get("spark.master", config.master)
    if master != config.master:
        raise RunError(
            f"spark-submit was given the master {master}, and kaflow {config.master}",
            hint=f"give kaflow the same: --master {master}",
        )
    there = {Path(jar).name for jar in given.get("spark.jars", "").split(",")}
    if not {jar.name for jar in jars} <= there:
        raise RunError(
            "spark-submit was not given the jars of the Kafka source",
            hint=f"add --jars {','.join(map(str, jars))}",
        )
    return config.model_copy(update={"conf": {**given, **config.conf}})


def python_of_tasks(config: SparkConfig, environ: Mapping[str, str] = os.environ) -> str:
    """Return the Python that executors start: on this machine the one that runs this.

    Args:
        config: Whose `conf` may name one.
        environ: Whose PYSPARK_PYTHON may name the one of a cluster.
    """
    if is_local(config.master):
        return sys.executable
    return config.conf.get(_PYTHON) or environ.get("PYSPARK_PYTHON") or sys.executable


def session_settings(config: SparkConfig, jars: Sequence[Path]) -> dict[str, str]:
    """Merge the engine's settings, the author's, and those that cannot be changed."""
    local = is_local(config.master)
    settings = {**SETTINGS, **(ON_ONE_MACHINE if local else ON_A_CLUSTER), **config.conf, **FIXED}
    paths = [*filter(None, [settings.get("spark.jars")]), *map(str, jars)]
    if paths:
        settings["spark.jars"] = ",".join(paths)
    settings[_OPTIONS] = driver_options(settings.get(_OPTIONS, ""))
    if not local:
        settings[_EXECUTOR_OPTIONS] = java_options(settings.get(_EXECUTOR_OPTIONS, ""))
    return settings


def driver_options(own: str) -> str:
    """Return the options of the driver's JVM: those of every JVM, and what it logs."""
    if "log4j2.configurationFile" not in own:
        file = files("kaflow_engine.runtime.spark").joinpath("log4j2.properties")
        own = f"{own} -Dlog4j2.configurationFile=file:{file}".strip()
    return java_options(own)


def java_options(own: str) -> str:
    """Return the options of every JVM: the author's, and ours where they say nothing else."""
    options = [own] if own else []
    if not re.search(r"-XX:\+Use\w+GC\b", own):
        # for a small heap of short-lived records it takes less CPU than Java's own choice
        options.append("-XX:+UseParallelGC")
    if "arrow.enable_unsafe_memory_access" not in own:
        # Spark sets each value with a call that has made room before
        options.append("-Darrow.enable_unsafe_memory_access=true")
    return " ".join(options)


def _forward(stream: IO[bytes]) -> None:
    for line in stream:
        text = line.decode(errors="replace").rstrip()
        if text and not _NOISE.search(text):
            level = logging.DEBUG if _STACK.match(text) else logging.WARNING
            LOGGER.log(level, "%s", masked("", text))
