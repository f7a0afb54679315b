"""The jobs of the peers: fetched, compiled and started."""

import os
import re
import shutil
import subprocess
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Self

from bench.measure.child import Child
from kaflow_engine.errors import RunError
from kaflow_engine.runtime.spark.jars import Artifact, fetch_files

LEAST = 17
"""The oldest major version of a JDK that compiles and runs the jobs."""

HERE = Path(__file__).parent
_OPENED = ("java.util", "java.lang", "java.util.concurrent", "java.time", "java.net", "java.nio")


@dataclass(frozen=True, slots=True, kw_only=True)
class Peer:
    """Another engine."""

    name: str
    title: str
    bundle: str
    """Of `jars.toml`."""
    job: str
    """Class of its job."""


FLINK = Peer(name="flink", title="Flink SQL 2.2.1", bundle="flink", job="FlinkJob")
STREAMS = Peer(
    name="kafka_streams",
    title="Kafka Streams 4.3.1",
    bundle="kafka-streams",
    job="StreamsJob",
)
PEERS = (FLINK, STREAMS)


@dataclass(frozen=True, slots=True, kw_only=True)
class Jdk:
    """What compiles and runs jobs."""

    javac: Path

    @property
    def java(self) -> Path:
        """Its `java`."""
        return self.javac.with_name("java")


def find_jdk(environ: Mapping[str, str] = os.environ) -> Jdk:
    """Return the first JDK >= 17 of JAVA_HOME and PATH.

    Raises:
        RunError: There is none.
    """
    home = environ.get("JAVA_HOME")
    on_path = shutil.which("javac", path=environ.get("PATH", ""))
    candidates = [Path(home) / "bin" / "javac"] if home else []
    candidates += [Path(on_path).resolve()] if on_path else []
    for javac in candidates:
        if _version(javac) >= LEAST:
            return Jdk(javac=javac)
    looked = ", ".join(str(javac) for javac in candidates) or "no javac"
    raise RunError(
        f"no JDK >= {LEAST} found (looked at: {looked})",
        hint="the jobs of the peers are compiled here, and a Java runtime has no javac: install a "
        "JDK, and set JAVA_HOME",
    )


def compiled(peer: Peer, jdk: Jdk, folder: Path) -> str:
    """Fetch what a peer needs, compile its job into a folder, and return the class path.

    Raises:
        SourceError: A jar cannot be fetched.
        RunError: The job does not compile.
    """
    jars = fetch_files(
        peer.bundle, [Artifact(*pinned) for pinned in _pinned()[peer.bundle].items()]
    )
    path = os.pathsep.join(str(jar) for jar in jars)
    source = HERE / "jobs" / f"{peer.job}.java"
    command = [str(jdk.javac), "-d", str(folder), "-cp", path, str(source)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        raise RunError(f"{source.name} does not compile", hint=done.stderr[-2000:])
    return f"{folder}{os.pathsep}{path}"


@dataclass(slots=True, kw_only=True)
class Job(Child):
    """A job of a peer."""

    jdk: Jdk
    class_path: str
    peer: Peer
    arguments: tuple[str, ...]
    """Brokers, workload, topics of clicks, profiles and rows."""
    threads: int

    def __enter__(self) -> Self:
        state = self.folder / "state"
        state.mkdir(parents=True)
        opened = [f"--add-opens=java.base/{name}=ALL-UNNAMED" for name in _OPENED]
        self.start(
            [
                *(str(self.jdk.java), *opened, "-Xmx8g"),
                "-Dorg.slf4j.simpleLogger.defaultLogLevel=warn",
                *("-cp", self.class_path, self.peer.job),
                *(*self.arguments, str(state), str(self.threads)),
            ]
        )
        return self


def _version(javac: Path) -> int:
    try:
        done = subprocess.run(
            [str(javac), "-version"], capture_output=True, text=True, timeout=30, check=False
        )
    except (OSError, subprocess.TimeoutExpired):
        return 0
    found = re.search(r"javac (?:1\.)?(\d+)", done.stdout + done.stderr)
    return int(found[1]) if found else 0


@cache
def _pinned() -> Mapping[str, Mapping[str, str]]:
    return tomllib.loads((HERE / "jars.toml").read_text("utf-8"))
