"""A real schema registry on this machine: Apicurio, with Confluent's interface."""

import json
import shutil
import tarfile
import urllib.error
import urllib.request
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Self

from kaflow_engine.errors import RunError
from kaflow_engine.runtime.spark.cache import cache_dir, locked
from kaflow_engine.runtime.spark.jars import registry_archive
from kaflow_engine.runtime.spark.java import find_java
from kaflow_engine.testing.services.child import Child, free_ports, listening

START_SECONDS = 120.0

_JVM = ("-Xms64m", "-Xmx384m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1")


class SchemaRegistry:
    """A schema registry on 127.0.0.1, in memory; ends with this process at the latest.

    Its global compatibility is BACKWARD, as Confluent's is.
    """

    def __init__(self, port: int | None = None) -> None:
        self._port = port
        self._child: Child | None = None
        self._scratch: TemporaryDirectory[str] | None = None

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(self, *error: object) -> None:
        self.stop()

    @property
    def url(self) -> str:
        """What clients of Confluent's registry are given as its address."""
        return f"http://127.0.0.1:{self._port}/apis/ccompat/v7"

    @property
    def running(self) -> bool:
        """Whether the registry has been started and has not ended."""
        return self._child is not None and self._child.running

    def start(self) -> None:
        """Start the registry and return when it answers.

        Raises:
            RunError: there is no Java, the port is taken, or the registry did not come up.
            SourceError: the registry's archive cannot be fetched.
        """
        if self.running:
            return
        home = _unpacked()
        if self._port is None:
            self._port = free_ports(1)[0]
        elif listening(self._port):
            raise RunError(
                f"port {self._port} of 127.0.0.1 is taken",
                hint="something already listens there; choose another port",
            )
        self._scratch = TemporaryDirectory(prefix="kaflow-registry-")
        settings = {"quarkus.http.host": "127.0.0.1", "quarkus.http.port": self._port}
        options = [f"-D{name}={value}" for name, value in settings.items()]
        jar = next(home.glob("apicurio-registry-app-*-runner.jar"))
        command = [str(find_java().executable), *_JVM, *options, "-jar", str(jar)]
        self._child = Child(command, Path(self._scratch.name) / "registry.log")
        try:
            self._child.wait_until(self._answers, "the schema registry", START_SECONDS)
            self._ask("PUT", "/config", {"compatibility": "BACKWARD"})
        except BaseException:
            self._child.kill()
            self.stop()
            raise

    def stop(self) -> None:
        """Stop the registry; its schemas go."""
        if self._child is not None:
            self._child.kill()  # nothing of it is kept
            self._child = None
        if self._scratch is not None:
            self._scratch.cleanup()
            self._scratch = None

    def last_words(self) -> str:
        """Return the end of the registry's log, as a hint."""
        return self._child.last_words() if self._child else "it has not been started"

    def _answers(self) -> bool:
        if self._port is None or not listening(self._port):
            return False
        try:
            self._ask("GET", "/subjects")
        except (urllib.error.URLError, OSError):
            return False
        return True

    def _ask(self, method: str, path: str, body: object = None) -> None:
        request = urllib.request.Request(
            self.url + path,
            method=method,
            data=None if body is None else json.dumps(body).encode(),
            headers={"Content-Type": "application/vnd.schemaregistry.v1+json"},
        )
        with urllib.request.urlopen(request, timeout=10) as answer:
            answer.read()


def _unpacked() -> Path:
    """Return the folder of the unpacked registry."""
    archive = registry_archive()
    home = cache_dir() / "registry" / archive.name.removesuffix(".tar.gz")
    if not home.exists():
        with locked(home.with_name(f"{home.name}.lock")):
            if not home.exists():
                beside = home.with_name(f"{home.name}.new")
                shutil.rmtree(beside, ignore_errors=True)
                with tarfile.open(archive) as content:
                    content.extractall(beside, filter="data")
                beside.replace(home)
    return home
