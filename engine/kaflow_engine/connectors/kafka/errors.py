"""Says in our words what librdkafka's error codes mean: what, where, what to do."""

import re
from typing import NoReturn

from confluent_kafka import KafkaError, KafkaException

from kaflow_engine.errors import (
    KaflowError,
    LossSuspected,
    ModelError,
    SinkAway,
    SinkError,
    SinkUnfit,
    SourceError,
    TakenOver,
    UnknownName,
)

_FAIL = -196

UNREACHABLE = frozenset(
    {"_TRANSPORT", "_ALL_BROKERS_DOWN", "_TIMED_OUT", "_RESOLVE", "REQUEST_TIMED_OUT"}
)
MOVING = frozenset(
    {
        "NOT_LEADER_FOR_PARTITION",
        "LEADER_NOT_AVAILABLE",
        "FENCED_LEADER_EPOCH",
        "UNKNOWN_LEADER_EPOCH",
        "OFFSET_NOT_AVAILABLE",
        "REPLICA_NOT_AVAILABLE",
        "BROKER_NOT_AVAILABLE",
    }
)
"""What brokers answer while partitions find a new leader."""

_BEHIND = frozenset({"NOT_ENOUGH_REPLICAS", "NOT_ENOUGH_REPLICAS_AFTER_APPEND"})
"""What brokers answer while others of them are away, or catch up."""

_LOST = frozenset({"_AUTO_OFFSET_RESET", "OFFSET_OUT_OF_RANGE"})

FENCED = frozenset({"_FENCED", "INVALID_PRODUCER_EPOCH", "PRODUCER_FENCED"})
MISSING = frozenset(
    {
        "UNKNOWN_TOPIC_OR_PART",
        "_UNKNOWN_TOPIC",
        "_UNKNOWN_PARTITION",
        "_NOENT",
    }
)
_LOGIN = frozenset(
    {
        "_AUTHENTICATION",
        "SASL_AUTHENTICATION_FAILED",
        "UNSUPPORTED_SASL_MECHANISM",
        "ILLEGAL_SASL_STATE",
    }
)
_FORBIDDEN: dict[str, str] = {
    "TOPIC_AUTHORIZATION_FAILED": "the topic",
    "GROUP_AUTHORIZATION_FAILED": "the consumer group",
    "CLUSTER_AUTHORIZATION_FAILED": "the cluster",
    "TRANSACTIONAL_ID_AUTHORIZATION_FAILED": "transactional ids 'kaflow.*'",
}
_REFUSED = {
    "MSG_SIZE_TOO_LARGE": (
        "a record is larger than the topic takes",
        "raise 'max.message.bytes' of the topic and 'message.max.bytes' in 'kafka.properties'",
    ),
    "INVALID_TIMESTAMP": (
        "the topic does not take the record's timestamp",
        "raise 'message.timestamp.before.max.ms' and 'message.timestamp.after.max.ms' of the topic",
    ),
    "INVALID_RECORD": (
        "the topic refuses the record",
        "a compacted topic takes no record without a key",
    ),
    "INVALID_TRANSACTION_TIMEOUT": (
        "the brokers do not let a transaction take as long as 'kafka.transaction_timeout' says",
        "lower 'kafka.transaction_timeout', or raise 'transaction.max.timeout.ms' of the brokers",
    ),
    "TOPIC_EXCEPTION": ("the brokers do not take the name of the topic", None),
    **dict.fromkeys(
        _BEHIND, ("too few replicas of the topic are in sync", "start the brokers that are missing")
    ),
}
_COMMON = (
    *("security.protocol", "sasl.mechanism", "sasl.username", "sasl.password"),
    *("ssl.ca.location", "ssl.certificate.location", "ssl.key.location", "ssl.key.password"),
    *("client.id", "message.max.bytes", "compression.type", "linger.ms", "socket.timeout.ms"),
)
"""Properties that authors write most, for guesses at what was meant."""

_ALERT = re.compile(r"alert (bad|no|unsupported|revoked|expired|unknown)? ?(certificate|ca)\b")


def is_refusal(error: KafkaError) -> bool:
    """Tell whether a broker answered, and does not let this client in."""
    return error.name() in _LOGIN | {"_SSL", *_FORBIDDEN} or _is_alert(error)


def _is_alert(error: KafkaError) -> bool:
    """Tell whether a broker does not take the certificate of this client, or wants one."""
    return error.name() == "_TRANSPORT" and _ALERT.search(error.str()) is not None


class BrokerAway(SourceError):
    """No broker answers a reader; it may come back."""

    outage = "retry"


class BrokerAwaySink(SinkAway):
    """No broker answers a writer; it may come back."""


class LoginRefused(SourceError):
    """The brokers do not let a reader in; asking again does not help."""

    outage = "bad settings"


class LoginRefusedSink(SinkUnfit):
    """The brokers do not let a writer in; asking again does not help."""


class RowRefused(SinkError):
    """A topic does not take a row, and will not as long as its settings are what they are."""

    outage = "stop"


class OutOfTime(SinkError):
    """A transaction took longer than the brokers let it; smaller ones may not."""


class TransactionTimeoutRefused(SinkUnfit):
    """The brokers do not let a transaction take as long as the configuration says."""


_ROW = frozenset({"MSG_SIZE_TOO_LARGE", "INVALID_TIMESTAMP", "INVALID_RECORD", "TOPIC_EXCEPTION"})


class Trouble(Exception):
    """What a client ran into, before it is known whether a source or a sink suffered."""

    def __init__(self, message: str, hint: str | None = None, code: str = "_FAIL") -> None:
        super().__init__(message)
        self.message = message
        self.hint = hint
        self.code = code

    def as_source(self) -> SourceError:
        """Return the error of a reader."""
        if self.code in _LOST:
            return LossSuspected(self.message)
        kind = BrokerAway if self._away else LoginRefused if self._refused else SourceError
        return kind(self.message, hint=self.hint)

    def as_sink(self) -> SinkError:
        """Return the error of a writer."""
        kind = BrokerAwaySink if self._away else LoginRefusedSink if self._refused else SinkError
        if self.code in _ROW:
            kind = RowRefused
        if self.code in FENCED:
            kind = TakenOver
        if self.code == "INVALID_TRANSACTION_TIMEOUT":
            kind = TransactionTimeoutRefused
        return kind(self.message, hint=self.hint)

    @property
    def _away(self) -> bool:
        return self.code in UNREACHABLE | MOVING | _BEHIND

    @property
    def _refused(self) -> bool:
        return self.code in _LOGIN or self.code == "_SSL" or self.code in _FORBIDDEN


def words(error: KafkaError) -> str:
    """Return an error's name as words."""
    return error.name().strip("_").replace("_", " ").lower()


def error_of(failure: BaseException) -> KafkaError:
    """Return the KafkaError inside a KafkaException.

    The client raises SystemError from it where a fatal error comes up in `flush` or `len`.
    """
    if isinstance(failure, SystemError) and failure.__cause__ is not None:
        failure = failure.__cause__
    found: object = failure.args[0] if failure.args else None
    return found if isinstance(found, KafkaError) else KafkaError(_FAIL)


def trouble(
    error: KafkaError,
    doing: str,
    bootstrap: str,
    timeout: int,
    complaints: tuple[KafkaError, ...] = (),
) -> Trouble:
    """Explain an error that came up while `doing` something, in the light of what came before."""
    code = error.name()
    if code in UNREACHABLE:
        aside = next((c for c in reversed(complaints) if is_refusal(c)), None)
        if aside is not None:
            error, code = aside, aside.name()
    if code in _LOGIN:
        return Trouble(
            f"the broker at {bootstrap} refused the login",
            "check 'security.protocol', 'sasl.mechanism', 'sasl.username' and 'sasl.password' "
            "in 'kafka.properties'",
            code,
        )
    if _is_alert(error):
        return Trouble(
            f"the broker at {bootstrap} does not take the certificate of this client",
            "check 'ssl.certificate.location' and 'ssl.key.location' (or 'ssl.keystore.*') in "
            "'kafka.properties': the broker wants one that an authority it knows has signed",
            "_SSL",
        )
    if code == "_SSL":
        return Trouble(
            f"no secure connection to the broker at {bootstrap}",
            "check 'security.protocol' and 'ssl.ca.location' in 'kafka.properties', and that the "
            "port is the TLS one",
            code,
        )
    if code in UNREACHABLE and any("security.protocol" in c.str() for c in complaints):
        return Trouble(
            f"the broker at {bootstrap} hung up at once ({doing})",
            "check 'security.protocol' in 'kafka.properties' against the kind of listener",
            code,
        )
    if code in UNREACHABLE:
        return Trouble(
            f"no broker at {bootstrap} answered within {timeout / 1000:g} s ({doing})",
            "check 'kafka.brokers', that the broker runs, that the address it advertises can be "
            "reached from here, and 'security.protocol' in 'kafka.properties' where it wants TLS",
            code,
        )
    if code in MOVING:
        hint = "brokers that were restarted need a moment; check that they all run"
        return Trouble(f"no broker leads the partition just now ({doing})", hint, code)
    if code in _FORBIDDEN:
        hint = f"the user of 'kafka.properties' needs a permission on {_FORBIDDEN[code]}"
        return Trouble(f"not authorised: {doing}", hint, code)
    if code in FENCED:
        return Trouble(
            f"another run of this pipeline has taken over ({doing})",
            "a pipeline has one run at a time; stop this one",
            code,
        )
    if code in _LOST:
        return Trouble(f"records were lost in Kafka ({doing})", code=code)
    if code in MISSING:
        hint = "create it, or let the brokers create topics ('auto.create.topics.enable')"
        return Trouble(f"the topic does not exist ({doing})", hint, code)
    if code in _REFUSED:
        reason, hint = _REFUSED[code]
        return Trouble(f"{reason} ({doing})", hint, code)
    return Trouble(f"{doing} failed: {words(error)}", code=code)


_VALUES = {
    "security.protocol": "known: PLAINTEXT, SSL, SASL_PLAINTEXT, SASL_SSL",
    "ssl.ca.location": "name a PEM file of certificates that this user may read",
    "ssl.certificate.location": "name a PEM file that this user may read",
    "ssl.key.location": "name a PEM file that this user may read, and give ssl.key.password",
}
"""What to do about a property whose value is refused."""


def _unknown_property(name: str) -> ModelError:
    nearest = UnknownName("Kafka property", name, _COMMON).hint
    close = nearest if nearest and nearest.startswith("did you") else None
    hint = close or "check 'kafka.properties'; names are those of librdkafka or the Java client"
    return ModelError(f"unknown Kafka property '{name}'", hint=hint)


def raise_settings(failure: KafkaException) -> NoReturn:
    """Raise a ModelError for settings a client refused, without their values."""
    text = error_of(failure).str()
    unknown = re.search(r'No such configuration property: "([^"]+)"', text)
    if unknown:
        raise _unknown_property(unknown.group(1)) from None
    named = re.search(r'property "([\w.]+)"|\b((?:ssl|sasl|security)\.[\w.]+)', text)
    name = (named.group(1) or named.group(2)) if named else None
    problem: KaflowError = ModelError(
        f"the Kafka client refuses '{name}'" if name else "the Kafka client refuses its settings",
        hint=_VALUES.get(name or "", "check 'kafka.properties'"),
    )
    raise problem from None
