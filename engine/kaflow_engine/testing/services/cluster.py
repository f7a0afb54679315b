"""A real Spark standalone cluster on this machine, for tests and for trying things out."""

from collections.abc import Mapping, Sequence
from functools import partial
from importlib.util import find_spec
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Self

from kaflow_engine.errors import RunError
from kaflow_engine.runtime.spark.class_archive import archive_options, spark_archive
from kaflow_engine.runtime.spark.java import find_java
from kaflow_engine.runtime.spark.launch import properties_text
from kaflow_engine.testing.services.child import Child, free_ports, listening
from kaflow_engine.testing.services.processes import Processes

LOCAL = "127.0.0.1"
START_SECONDS = 120.0

_JVM = (
    "-Xms32m",
    "-Xmx192m",
    "-XX:+UseSerialGC",
    "-XX:TieredStopAtLevel=1",
    "-Djava.net.preferIPv4Stack=true",
    # the interfaces for people and for other programs to look at it
    "-Dspark.ui.enabled=false",
    "-Dspark.master.rest.enabled=false",
    # a worker whose process was killed is missed after a quarter of this
    "-Dspark.worker.timeout=12",
)
_MASTER = "org.apache.spark.deploy.master.Master"
_WORKER = "org.apache.spark.deploy.worker.Worker"
_EXECUTOR = "CoarseGrainedExecutorBackend"


class Cluster:
    """A master and workers of one core each on 127.0.0.1; ends with this process at the latest."""

    def __init__(
        self, workers: int = 1, memory: str = "1g", conf: Mapping[str, str] | None = None
    ) -> None:
        """Describe a cluster.

        Args:
            workers: How many.
            memory: What each offers to executors.
            conf: Settings of master and workers, such as those that keep others away.
        """
        self._count, self._memory, self._conf = workers, memory, conf or {}
        self._scratch: TemporaryDirectory[str] | None = None
        self._port = 0
        self._master: Child | None = None
        self._workers: list[Child] = []

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(self, *error: object) -> None:
        self.stop()

    @property
    def url(self) -> str:
        """What to give as `spark.master`."""
        return f"spark://{LOCAL}:{self._port}"

    @property
    def workers(self) -> tuple[int, ...]:
        """Process ids of the workers that run."""
        return tuple(worker.pid for worker in self._workers if worker.running)

    def start(self) -> None:
        """Start master and workers, and return when the workers are registered.

        Raises:
            RunError: There is no Java, or one of them did not come up.
        """
        self._scratch = TemporaryDirectory(prefix="kaflow-cluster-", ignore_cleanup_errors=True)
        (self._port,) = free_ports(1)
        where = ["--host", LOCAL, "--webui-port", "0"]
        try:
            self._master = self._start("master", [_MASTER, *where, "--port", str(self._port)])
            self._master.wait_until(
                lambda: listening(self._port), f"the Spark master at {self.url}", START_SECONDS
            )
            self.add_workers(self._count)
        except BaseException:
            self.stop()
            raise

    def add_workers(self, count: int = 1) -> None:
        """Start more workers, and return when they are registered.

        Raises:
            RunError: One of them did not come up.
        """
        where = ["--host", LOCAL, "--webui-port", "0", "--cores", "1", "--memory", self._memory]
        added: list[tuple[str, Child]] = []
        for number in range(len(self._workers), len(self._workers) + count):
            name = f"worker-{number}"
            work = ["--work-dir", str(self._folder / f"work-{number}")]
            added.append((name, self._start(name, [_WORKER, *where, *work, self.url])))
            self._workers.append(added[-1][1])
        for name, worker in added:
            registered = partial(_holds, self._log(name), "registered with")
            worker.wait_until(registered, f"Spark {name}", START_SECONDS)

    def executors(self) -> tuple[int, ...]:
        """Return the process ids of executors, in the order of their workers."""
        now = Processes()
        return tuple(
            pid
            for worker in self.workers
            for pid in now.children(worker)
            if _EXECUTOR in _command_line(pid)
        )

    def stop(self) -> None:
        """Stop everything; executors end with their workers."""
        for child in [*self._workers, *filter(None, [self._master])]:
            child.stop()
        self._workers, self._master = [], None
        if self._scratch is not None:
            self._scratch.cleanup()
            self._scratch = None

    @property
    def _folder(self) -> Path:
        if self._scratch is None:
            raise RunError("the cluster has not been started")
        return Path(self._scratch.name)

    def _log(self, name: str) -> Path:
        return self._folder / f"{name}.log"

    def _start(self, name: str, arguments: Sequence[str]) -> Child:
        java, home = find_java(), spark_home()
        scratch = self._folder / f"local-{name}"
        scratch.mkdir()
        environment = [
            f"SPARK_HOME={home}",
            "SPARK_SCALA_VERSION=2.13",  # which Spark's own start scripts set
            f"JAVA_HOME={java.home}",
            f"SPARK_LOCAL_DIRS={scratch}",
            f"SPARK_LOCAL_IP={LOCAL}",
        ]
        # as Spark's scripts put it, so that the archive of classes fits
        paths = [home / "conf", *home.glob("jars/slf4j-api-*.jar"), home / "jars" / "*"]
        options = [*_JVM, *archive_options(spark_archive(java)), "-cp", ":".join(map(str, paths))]
        settings = self._folder / f"{name}.properties"
        settings.touch(0o600)  # before anything secret is in it
        settings.write_text(properties_text(self._conf))
        own = [arguments[0], "--properties-file", str(settings), *arguments[1:]]
        command = [str(java.executable), *options, *own]
        return Child(["env", *environment, *command], self._log(name))


def _holds(log: Path, words: str) -> bool:
    return words in log.read_text(errors="replace")


def spark_home() -> Path:
    """Return the folder of the installed pyspark, which holds all of Spark."""
    found = find_spec("pyspark")
    if found is None or found.origin is None:
        raise RunError("pyspark is not installed", hint="pip install pyspark")
    return Path(found.origin).parent


def _command_line(pid: int) -> str:
    try:
        return Path(f"/proc/{pid}/cmdline").read_text()
    except OSError:  # it has just ended
        return ""
