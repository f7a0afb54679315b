"""The one place that builds a Spark session."""

import logging
import os
import re
import sys
from collections.abc import Mapping, Sequence
from importlib.resources import files
from pathlib import Path
from subprocess import PIPE
from threading import Thread
from typing import IO, Any, cast

from pyspark import SparkConf, SparkContext
from pyspark.java_gateway import launch_gateway  # pyright: ignore[reportUnknownVariableType]  # untyped
from pyspark.sql import SparkSession

from kaflow_engine.masking import masked
from kaflow_engine.model.config import SparkConfig
from kaflow_engine.runtime.class_archive import archive_options, spark_archive
from kaflow_engine.runtime.java import Java

LOGGER = logging.getLogger("kaflow.spark")
LOCAL = "127.0.0.1"
_CHECKPOINTS = "org.apache.spark.sql.execution.streaming.checkpointing"
_OPTIONS = "spark.driver.extraJavaOptions"
_NOISE = re.compile(r"incubator modules|log4j|Setting default log level|setLogLevel|log level to")

SETTINGS: Mapping[str, str] = {
    "spark.app.name": "kaflow",
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    # what nobody looks at fills the heap all the same
    "spark.ui.retainedJobs": "10",
    "spark.ui.retainedStages": "10",
    "spark.ui.retainedTasks": "100",
    "spark.sql.ui.retainedExecutions": "10",
    "spark.sql.streaming.ui.enabled": "false",
    # garbage that outlives young collections would fill the heap before it goes
    "spark.cleaner.periodicGC.interval": "5min",
    "spark.driver.bindAddress": LOCAL,
    "spark.driver.host": LOCAL,
    "spark.driver.memory": "1g",
    "spark.scheduler.mode": "FAIR",
    "spark.python.worker.reuse": "true",
    "spark.sql.adaptive.enabled": "false",
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
}
"""What measurements settled; `spark.conf` of the configuration goes over it."""

ON_ONE_MACHINE: Mapping[str, str] = {
    # what stays on the machine takes longer to compress than to write
    "spark.shuffle.compress": "false",
}
"""What goes over that where the master is local."""

FIXED: Mapping[str, str] = {
    "spark.task.maxFailures": "1",
    "spark.stage.maxConsecutiveAttempts": "1",
    "spark.speculation": "false",
}
"""What nobody may change: the engine recovers through its own batch log, never by retries."""


def start_session(config: SparkConfig, java: Java, jars: Sequence[Path]) -> SparkSession:
    """Start Spark in this process; what its JVM prints goes to the logger `kaflow.spark`.

    Args:
        config: Master and the author's settings.
        java: The Java that runs it.
        jars: The jars of the Kafka source.
    """
    logging.getLogger("py4j").setLevel(logging.WARNING)  # it tells of every connection
    os.environ["JAVA_HOME"] = str(java.home)
    os.environ["PYSPARK_PYTHON"] = os.environ["PYSPARK_DRIVER_PYTHON"] = sys.executable
    os.environ.setdefault("SPARK_LOCAL_IP", LOCAL)
    conf = SparkConf(loadDefaults=False).setMaster(config.master)
    settings = session_settings(config, jars)
    options = [settings[_OPTIONS], *archive_options(spark_archive(java))]
    conf.setAll(list({**settings, _OPTIONS: " ".join(options)}.items()))
    if SparkContext._gateway is not None:  # noqa: SLF001  # pyright: ignore[reportPrivateUsage, reportUnknownMemberType]  # a process has one JVM, which outlives its sessions
        return SparkSession(SparkContext.getOrCreate(conf))
    gateway = launch_gateway(conf, {"stderr": PIPE})
    errors = cast("IO[bytes] | None", cast(Any, gateway).proc.stderr)
    if errors is not None:
        Thread(target=_forward, args=(errors,), name="spark-stderr", daemon=True).start()
    return SparkSession(SparkContext(conf=conf, gateway=gateway))


def session_settings(config: SparkConfig, jars: Sequence[Path]) -> dict[str, str]:
    """Merge the engine's settings, the author's, and those that cannot be changed."""
    settings = dict(SETTINGS)
    if config.master.startswith("local"):
        settings |= ON_ONE_MACHINE
    settings |= {**config.conf, **FIXED}
    paths = [*filter(None, [settings.get("spark.jars")]), *map(str, jars)]
    if paths:
        settings["spark.jars"] = ",".join(paths)
    settings[_OPTIONS] = java_options(settings.get(_OPTIONS, ""))
    return settings


def java_options(own: str) -> str:
    """Return the options of the JVM: the author's, and ours where they say nothing else."""
    options = [own] if own else []
    if "log4j2.configurationFile" not in own:
        file = files("kaflow_engine.runtime").joinpath("log4j2.properties")
        options.append(f"-Dlog4j2.configurationFile=file:{file}")
    if not re.search(r"-XX:\+Use\w+GC\b", own):
        # for a small heap of short-lived records it takes less CPU than Java's own choice
        options.append("-XX:+UseParallelGC")
    if "arrow.enable_unsafe_memory_access" not in own:
        # Spark sets each value with a call that has made room before
        options.append("-Darrow.enable_unsafe_memory_access=true")
    return " ".join(options)


def cores(master: str) -> int:
    """Return how many tasks run at once under a local master; elsewhere the least useful number.

    >>> cores("local[3]"), cores("local"), cores("spark://host:7077")
    (3, 1, 2)
    """
    if master == "local":
        return 1
    if found := re.fullmatch(r"local\[(\*|\d+)(?:,\s*\d+)?\]", master):
        return (os.cpu_count() or 1) if found[1] == "*" else int(found[1])
    return 2


def _forward(stream: IO[bytes]) -> None:
    for line in stream:
        text = line.decode(errors="replace").rstrip()
        if text and not _NOISE.search(text):
            LOGGER.warning("%s", masked("", text))
