"""A real Kafka broker on this machine, for tests and for trying things out."""

import base64
import shutil
import subprocess
import uuid
from collections.abc import Mapping
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Self

from confluent_kafka import KafkaException

from kaflow_engine.connectors.kafka.admin import create_topic
from kaflow_engine.connectors.kafka.client import KafkaSettings, open_admin
from kaflow_engine.errors import RunError
from kaflow_engine.runtime.spark.cache import locked
from kaflow_engine.runtime.spark.class_archive import archive_options, archive_path, recording
from kaflow_engine.runtime.spark.jars import kafka_broker_jars
from kaflow_engine.runtime.spark.java import find_java
from kaflow_engine.testing.services.broker_security import (
    Secure,
    add_scram_users,
    with_secure_listener,
)
from kaflow_engine.testing.services.child import Child, free_ports, listening

START_SECONDS = 120.0

_JVM = (
    "-Xms64m",
    "-Xmx384m",
    "-XX:+UseSerialGC",
    "-XX:TieredStopAtLevel=1",
    "-Djava.net.preferIPv4Stack=true",
    "-Dorg.slf4j.simpleLogger.defaultLogLevel=warn",
)

_PROPERTIES = """
process.roles=broker,controller
node.id=1
controller.quorum.voters=1@127.0.0.1:{controller}
listeners=PLAINTEXT://127.0.0.1:{port},CONTROLLER://127.0.0.1:{controller}
advertised.listeners=PLAINTEXT://127.0.0.1:{port}
controller.listener.names=CONTROLLER
listener.security.protocol.map=PLAINTEXT:PLAINTEXT,CONTROLLER:PLAINTEXT
inter.broker.listener.name=PLAINTEXT
log.dirs={logs}
num.partitions=2
auto.create.topics.enable=false
offsets.topic.replication.factor=1
offsets.topic.num.partitions=1
transaction.state.log.replication.factor=1
transaction.state.log.min.isr=1
transaction.state.log.num.partitions=1
share.coordinator.state.topic.replication.factor=1
share.coordinator.state.topic.min.isr=1
share.coordinator.state.topic.num.partitions=1
log.cleaner.dedupe.buffer.size=8388608
group.initial.rebalance.delay.ms=0
broker.heartbeat.interval.ms=500
broker.session.timeout.ms={session}
num.network.threads=2
num.io.threads=4
log.segment.bytes=268435456
log.retention.ms=-1
log.message.timestamp.after.max.ms=9223372036854775807
"""

_SESSION_MS = 30_000
"""For how long the broker may be silent on a machine whose processes wait for seconds."""

_SESSION_OF_A_KILLED_MS = 6_000
"""The same behind a crash: as long, a broker that comes back waits for its last life to expire."""


class Broker:
    """One Kafka broker in KRaft mode on 127.0.0.1; ends with this process at the latest.

    Topics are never created by reading or writing them, and records of any timestamp are taken
    and kept. Give `data` to keep them between runs; otherwise they go when the broker is stopped.
    `properties` go over those that it is started with.
    """

    def __init__(
        self,
        port: int | None = None,
        data: Path | None = None,
        secure: Secure | None = None,
        properties: Mapping[str, str] | None = None,
    ) -> None:
        self._asked_port = port
        self._data = data
        self._secure = secure
        self._properties = properties or {}
        self._scratch: TemporaryDirectory[str] | None = None
        self._child: Child | None = None
        self._ports: tuple[int, ...] | None = None

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(self, *error: object) -> None:
        self.stop()

    @property
    def bootstrap(self) -> str:
        """Its address, `127.0.0.1:<port>`."""
        if self._ports is None:
            raise RunError("the broker has not been started")
        return f"127.0.0.1:{self._ports[0]}"

    @property
    def secured(self) -> str:
        """The address of its listener for SASL over TLS."""
        if self._ports is None or self._secure is None:
            raise RunError("the broker has no secure listener, or has not been started")
        return f"127.0.0.1:{self._ports[2]}"

    @property
    def settings(self) -> KafkaSettings:
        """What the engine's clients are given to reach it."""
        return KafkaSettings((self.bootstrap,))

    @property
    def pid(self) -> int:
        """The process of the broker."""
        if self._child is None:
            raise RunError("the broker is not running")
        return self._child.pid

    @property
    def running(self) -> bool:
        """Whether the broker has been started and has not ended."""
        return self._child is not None and self._child.running

    def start(self) -> None:
        """Start the broker and return when it answers; does nothing when it runs.

        Raises:
            RunError: there is no Java, the port is taken, or the broker did not come up.
            SourceError: the broker's jars cannot be fetched.
        """
        if self.running:
            return
        ports = self._ports or self._choose_ports()
        self._ports = ports
        command = _java_command()
        if self._data is None:
            self._scratch = TemporaryDirectory(prefix="kaflow-broker-", ignore_cleanup_errors=True)
            self._data = Path(self._scratch.name)
        self._data.mkdir(parents=True, exist_ok=True)
        _format(command, self._data)
        config = self._data / "server.properties"
        written = _properties(ports, self._data / "logs", self._secure)
        more = "".join(f"{name}={value}\n" for name, value in self._properties.items())
        config.write_text(written + more)
        options = [] if self._secure is None else self._secure.java_options
        child = Child([*command, *options, "kafka.Kafka", str(config)], self._data / "broker.log")
        self._child = child
        try:
            child.wait_until(self._answers, f"the Kafka broker at {self.bootstrap}", START_SECONDS)
            if self._secure is not None:
                add_scram_users(self.settings, self._secure)
        except BaseException:
            child.kill()
            self.stop()
            raise

    def stop(self) -> None:
        """Stop the broker; its records go too, unless `data` was given."""
        if self._scratch is not None:
            self.kill()  # nothing of it is kept, and an orderly end may take half a minute
            self._scratch.cleanup()
            self._scratch = self._data = None
        elif self._child is not None:
            self._child.stop()
            self._child = None

    def kill(self) -> None:
        """End the broker as a crash would; `start` brings it back with its records and ports."""
        if self._child is not None:
            self._child.kill()
            self._child = None

    def restart(self) -> None:
        """Stop the broker and start it again, with the same records and ports."""
        if self._child is not None:
            self._child.stop()
            self._child = None
        self.start()

    def last_words(self) -> str:
        """Return the end of the broker's log, as a hint."""
        return self._child.last_words() if self._child else "it has not been started"

    def create_topic(
        self,
        name: str,
        partitions: int = 1,
        compact: bool = False,
        config: Mapping[str, str] | None = None,
    ) -> None:
        """Create a topic.

        Raises:
            RunError: the topic exists.
            SinkError: the broker refuses.
        """
        settings = {"cleanup.policy": "compact"} if compact else {}
        if not create_topic(self.settings, name, partitions, {**settings, **(config or {})}):
            raise RunError(f"topic '{name}' exists already")

    def _choose_ports(self) -> tuple[int, ...]:
        port, controller, secured = free_ports(3)
        if self._asked_port is None:
            return port, controller, secured
        if listening(self._asked_port):
            raise RunError(
                f"port {self._asked_port} of 127.0.0.1 is taken",
                hint="something already listens there; choose another port",
            )
        return self._asked_port, controller, secured

    def _answers(self) -> bool:
        if self._ports is None or not listening(self._ports[0]):
            return False
        try:
            return len(open_admin(self.settings).api.list_topics(timeout=5).brokers) == 1
        except KafkaException:
            return False


def _properties(ports: tuple[int, ...], logs: Path, secure: Secure | None) -> str:
    was_killed = (logs / ".lock").exists()  # an orderly end removes it
    session = _SESSION_OF_A_KILLED_MS if was_killed else _SESSION_MS
    plain = _PROPERTIES.format(port=ports[0], controller=ports[1], logs=logs, session=session)
    return plain if secure is None else with_secure_listener(plain, ports[2], secure)


def make_broker_archive() -> None:
    """Make the archive of a broker's classes unless it is there; takes some seconds."""
    archive = _archive()
    with locked(archive.parent / "lock"):
        if not archive.exists():
            with recording(archive), Broker() as broker:
                broker.create_topic("made", 1)


def _archive() -> Path:
    return archive_path("kafka", find_java(), kafka_broker_jars())


def _java_command() -> list[str]:
    java, jars = find_java(), kafka_broker_jars()
    options = archive_options(_archive())
    return [str(java.executable), *_JVM, *options, "-cp", ":".join(map(str, jars))]


def _format(command: list[str], data: Path) -> None:
    logs = data / "logs"
    if (logs / "meta.properties").exists():
        return
    pattern = _formatted(command)
    logs.mkdir(parents=True, exist_ok=True)
    for file in pattern.iterdir():
        shutil.copyfile(file, logs / file.name)
    meta = pattern.joinpath("meta.properties").read_text().splitlines()
    fresh = [line for line in meta if not line.startswith("cluster.id=")]
    logs.joinpath("meta.properties").write_text("\n".join([*fresh, f"cluster.id={_id()}", ""]))


def _formatted(command: list[str]) -> Path:
    """Return an empty, formatted log folder: formatting takes a JVM of its own, once is enough."""
    home = kafka_broker_jars()[0].parent / "formatted"
    if (home / "meta.properties").exists():
        return home
    with locked(home.with_suffix(".lock")):
        if not (home / "meta.properties").exists():
            scratch = home.with_suffix(".new")
            shutil.rmtree(scratch, ignore_errors=True)
            scratch.mkdir()
            config = scratch / "server.properties"
            ports = (9092, 9093, 0)
            config.write_text(_properties(ports, scratch / "logs", None))
            tool = ["kafka.tools.StorageTool", "format", "-t", _id(), "-c", str(config)]
            done = subprocess.run([*command, *tool], capture_output=True, text=True, check=False)
            if done.returncode:
                raise RunError("cannot format a broker's log folder", hint=done.stderr.strip())
            (scratch / "logs").replace(home)
            shutil.rmtree(scratch)
    return home


def _id() -> str:
    return base64.urlsafe_b64encode(uuid.uuid4().bytes).decode().rstrip("=")
