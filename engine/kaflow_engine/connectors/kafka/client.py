"""Connection settings and the only place where Kafka clients are built."""

import logging
from collections.abc import Iterable, Mapping
from concurrent.futures import Future, TimeoutError
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Generic, Protocol, TypeVar

from confluent_kafka import OFFSET_INVALID, Consumer, KafkaError, KafkaException, Producer
from confluent_kafka.admin import AdminClient, ListOffsetsResultInfo

from kaflow_engine.connectors.kafka.errors import (
    Trouble,
    error_of,
    is_refusal,
    raise_settings,
    trouble,
)
from kaflow_engine.connectors.kafka.options import is_secret, to_java, to_librdkafka
from kaflow_engine.model.outputs.cluster_specs import ClusterConfig, section_of

LOGGER = logging.getLogger("kaflow.kafka")
_EXPECTED = (
    "ADDPARTS",
    "CONFWARN",
    "GETPID",
    "FAIL",
    "ERROR",
    "REQTMOUT",
    "TXNERR",
    "FATAL",
    "OFFSET",
)

_DEFAULTS: dict[str, object] = {
    "reconnect.backoff.ms": 20,
    "reconnect.backoff.max.ms": 1000,
    "retry.backoff.ms": 20,
    "socket.nagle.disable": True,
    "socket.connection.setup.timeout.ms": 10_000,
}


PATIENT = 3600.0
"""Seconds given to librdkafka for an admin request, the most it takes. We wait less, but it must
not time out by itself: it aborts the process where an answer and the timeout of its request come
together, as they do after a process was frozen."""


@dataclass(frozen=True, slots=True, repr=False)
class KafkaSettings:
    """How to reach the brokers; picklable, and silent about its secrets."""

    brokers: tuple[str, ...]
    properties: tuple[tuple[str, str], ...] = ()
    """Client properties as the author wrote them, in librdkafka's or the Java client's names."""
    transaction_timeout: int = 60_000
    """Milliseconds after which the brokers abort a transaction that is still open."""
    cluster: str = ""
    """What the configuration calls it; empty: it is that of topics which name none."""

    @staticmethod
    def of(brokers: Iterable[str], properties: Mapping[str, str] | None = None) -> "KafkaSettings":
        """Return settings for brokers, with client properties."""
        pairs = {name: str(value) for name, value in (properties or {}).items()}
        return KafkaSettings(tuple(brokers), tuple(sorted(pairs.items())))

    @staticmethod
    def configured(kafka: ClusterConfig, cluster: str = "") -> "KafkaSettings":
        """Return settings from what the configuration holds of a cluster."""
        found = KafkaSettings.of(kafka.brokers, kafka.properties)
        return replace(found, transaction_timeout=kafka.transaction_timeout, cluster=cluster)

    @property
    def bootstrap(self) -> str:
        """The brokers, comma-separated."""
        return ",".join(self.brokers)

    def own(self, text: str) -> str:
        """Return a text that names settings of `kafka` with those of this cluster."""
        return text.replace("'kafka.", f"'{section_of(self.cluster)}.")

    def librdkafka(self, **more: object) -> dict[str, object]:
        """Return the configuration of a confluent client; `more` goes over everything else.

        Raises:
            ModelError: A Java property that has no counterpart.
        """
        written = to_librdkafka(dict(self.properties))
        return {**_DEFAULTS, **written, "bootstrap.servers": self.bootstrap, **more}

    def spark(self) -> dict[str, str]:
        """Return the `kafka.*` options of Spark's Kafka source.

        Raises:
            ModelError: A librdkafka property that has no counterpart.
        """
        options = {f"kafka.{k}": v for k, v in to_java(dict(self.properties)).items()}
        return {**options, "kafka.bootstrap.servers": self.bootstrap}

    def __repr__(self) -> str:
        shown = {name: "***" if is_secret(name) else value for name, value in self.properties}
        return f"KafkaSettings(brokers={self.brokers}, properties={shown})"


class Complaints:
    """The errors a client reported aside, newest last; they explain a later timeout."""

    def __init__(self) -> None:
        self.errors: tuple[KafkaError, ...] = ()

    def __call__(self, error: KafkaError) -> None:
        """Take one report; librdkafka repeats itself, so only a few are kept."""
        LOGGER.debug("%s: %s", error.name(), error.str())
        self.errors = (*self.errors[-15:], error)


T = TypeVar("T")
T_co = TypeVar("T_co", bound="Polled", covariant=True)


class Polled(Protocol):
    """Any client: those of Python, or of the library of `engine/native`."""

    def poll(self, timeout: float, /) -> object:
        """Hand over what waits in the client."""
        ...


@dataclass(frozen=True, slots=True)
class Client(Generic[T_co]):
    """A client with what it complained about."""

    api: T_co
    settings: KafkaSettings
    complaints: Complaints

    def is_refused(self) -> bool:
        """Tell whether a broker has refused this client, so that waiting does not help."""
        with suppress(KafkaException, SystemError):
            self.api.poll(0)
        return any(is_refusal(error) for error in self.complaints.errors)

    def trouble(self, failure: KafkaException | KafkaError, doing: str, timeout: int) -> Trouble:
        """Explain a failure of this client."""
        # hands over the complaints that wait in the client; a fatal one is known, and raised again
        with suppress(KafkaException, SystemError):
            self.api.poll(0)
        error = failure if isinstance(failure, KafkaError) else error_of(failure)
        found = trouble(error, doing, self.settings.bootstrap, timeout, self.complaints.errors)
        hint = None if found.hint is None else self.settings.own(found.hint)
        return Trouble(found.message, hint, found.code)


def open_producer(settings: KafkaSettings, **more: object) -> Client[Producer]:
    """Return a producer; delivery errors go to the `on_delivery` in `more`.

    Raises:
        ModelError: Settings that the client refuses.
    """
    complaints = Complaints()
    config = settings.librdkafka(**{"error_cb": complaints, **more})
    try:
        return Client(Producer(config, logger=LOGGER), settings, complaints)
    except KafkaException as failure:
        raise_settings(failure)


def open_consumer(settings: KafkaSettings, **more: object) -> Client[Consumer]:
    """Return a consumer that is assigned by hand and never commits by itself.

    Raises:
        ModelError: Settings that the client refuses.
    """
    complaints = Complaints()
    base: dict[str, object] = {
        "group.id": "kaflow-read",
        "enable.auto.commit": False,
        "enable.auto.offset.store": False,
        "enable.partition.eof": True,
        "isolation.level": "read_committed",
        "auto.offset.reset": "earliest",
        "allow.auto.create.topics": False,
        "fetch.queue.backoff.ms": 5,
        "fetch.wait.max.ms": 20,
        "fetch.error.backoff.ms": 20,
        "error_cb": complaints,
    }
    config = settings.librdkafka(**{**base, **more})
    try:
        return Client(Consumer(config, logger=LOGGER), settings, complaints)
    except KafkaException as failure:
        raise_settings(failure)


def open_admin(settings: KafkaSettings) -> Client[AdminClient]:
    """Return an admin client.

    Raises:
        ModelError: Settings that the client refuses.
    """
    complaints = Complaints()
    config = settings.librdkafka(**{"error_cb": complaints})
    try:
        admin = AdminClient(config, logger=LOGGER)
    except KafkaException as failure:
        raise_settings(failure)
    return Client(admin, settings, complaints)


def answer_of(future: Future[T], timeout: int) -> T:
    """Wait so many ms for the answer to an admin request made with `PATIENT`.

    Raises:
        KafkaException: The broker refuses, or no answer came (`REQUEST_TIMED_OUT`).
    """
    try:
        return future.result(timeout / 1000)
    except TimeoutError:
        raise KafkaException(KafkaError(KafkaError.REQUEST_TIMED_OUT)) from None


def offset_of(future: Future[ListOffsetsResultInfo], timeout: int) -> int | None:
    """Wait so many ms for an offset asked for with `PATIENT`; None: the answer was lost with its
    connection, of which librdkafka 2 says nothing but an offset that there is not.

    Raises:
        KafkaException: As in `answer_of`.
    """
    offset = answer_of(future, timeout).offset
    return None if offset == OFFSET_INVALID else offset


class _Expected(logging.Filter):
    """Demotes to DEBUG what librdkafka retries by itself or also reports as an error."""

    def filter(self, record: logging.LogRecord) -> bool:
        if record.getMessage().startswith(_EXPECTED):
            record.levelno, record.levelname = logging.DEBUG, "DEBUG"
            return LOGGER.isEnabledFor(logging.DEBUG)
        return True


LOGGER.addFilter(_Expected())
