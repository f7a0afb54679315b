"""Where the messages of a file come from, in the words of a pipeline file."""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import assert_never

from kaflow_engine.errors import Location
from kaflow_engine.model.brought.settings import Setting
from kaflow_engine.model.files.tree import Entry
from kaflow_engine.model.sqlflow.lowering.clusters import Clusters
from kaflow_engine.model.sqlflow.lowering.said import Mistakes, Said, entry, mapping
from kaflow_engine.model.sqlflow.specs import (
    EventTimeSpec,
    KafkaSourceSpec,
    MqttSpec,
    OnErrorSpec,
    WebhookSpec,
    WebsocketSpec,
)

_PATH = ("pipeline", "source")
_SCHEMES = {"tcp": "mqtt", "ssl": "mqtts", "tls": "mqtts"}
"""What SQLFlow calls a connection to a broker of MQTT, and what it is called here."""
_ON_ERROR = {"RAISE": "fail", "IGNORE": "skip", "DLQ": "dead_letter"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Source:
    """What is read."""

    names: tuple[str, ...]
    """Topics, or the one source."""
    entries: tuple[Entry, ...]
    """Keys of a pipeline file."""
    settings: tuple[Setting, ...]
    is_kafka: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Typed:
    """What is known of the columns of messages beside what the messages show."""

    columns: dict[str, str] | None
    at: Location
    times: tuple[str, ...] = ()
    """The columns by which windows are made; the first one is the event time, where the file does
    not say it of the source."""
    idle_timeout: int | None = None
    """Seconds after which a partition without messages holds no window open."""


def lower_source(said: Said, typed: Typed, clusters: Clusters, mistakes: Mistakes) -> Source:
    """Return what a file reads.

    Args:
        said: The file.
        typed: Of its messages.
        clusters: Take that of the source.
        mistakes: What is wrong is added.
    """
    source = said.spec.pipeline.source
    part = getattr(source, source.type)
    at = said.at(*_PATH, source.type)
    if part is None:
        mistakes.add(
            f"'pipeline.source.{source.type}' is required",
            said.at(*_PATH, "type"),
            f"say under {source.type}: what is read",
        )
        return Source(names=(), entries=(), settings=(), is_kafka=source.type == "kafka")
    about = tuple(_about(said, part.event_time, typed, mistakes))
    match part:
        case KafkaSourceSpec():
            return _kafka(said, part, about, clusters, mistakes)
        case WebsocketSpec():
            kind, keys, settings = "websocket", [entry("url", part.uri, at)], []
        case MqttSpec():
            kind = "mqtt"
            keys, settings = _mqtt(said, part)
        case WebhookSpec():
            kind = "webhook"
            keys, settings = _webhook(said, part, at, mistakes)
        case _:
            assert_never(part)
    value = mapping(at, entry("type", kind, at), *keys, *about)
    own = entry("sources", mapping(at, entry(kind, value, at)), at)
    return Source(names=(kind,), entries=(own,), settings=tuple(settings))


def _kafka(
    said: Said,
    kafka: KafkaSourceSpec,
    about: tuple[Entry, ...],
    clusters: Clusters,
    mistakes: Mistakes,
) -> Source:
    path = (*_PATH, "kafka")
    clusters.of(kafka, path, "source")
    settings = list[Setting]()
    if kafka.group_id is not None:
        at = said.at(*path, "group_id")
        settings.append(Setting(path=("kafka", "consumer", "group"), value=kafka.group_id, at=at))
    reset = Setting(
        path=("kafka", "consumer", "auto_offset_reset"),
        value=kafka.auto_offset_reset,
        at=said.at(*path, "auto_offset_reset"),
    )
    at = said.at(*path, "topics")
    if not kafka.topics:
        mistakes.add("'pipeline.source.kafka.topics' names no topic", at, "write topics: [clicks]")
    if kafka.value.format != "json":
        form = entry("format", kafka.value.format, said.at(*path, "value", "format"))
        about = (form, *about)
        if said.spec.pipeline.schema_registry is None:
            mistakes.add(
                f"values are {kafka.value.format}, and no schema registry is named",
                form.at,
                "write pipeline.schema_registry: {url: http://host:8081}",
            )
    waits = entry("wait_for", True, at)
    topics = mapping(at, *(entry(name, mapping(at, waits, *about), at) for name in kafka.topics))
    return Source(
        names=tuple(dict.fromkeys(kafka.topics)),
        entries=(entry("topics", topics, at),),
        settings=(*settings, reset),
        is_kafka=True,
    )


def _webhook(
    said: Said, webhook: WebhookSpec, at: Location, mistakes: Mistakes
) -> tuple[list[Entry], list[Setting]]:
    keys = [
        entry("listen", webhook.addr, said.at(*_PATH, "webhook", "addr")),
        entry("path", "/events", at),
        entry("max_bytes", webhook.max_body_bytes, at),
        entry("max_connections", webhook.max_connections, at),
    ]
    if webhook.signature_type is None:
        return keys, []
    if webhook.hmac is None:
        mistakes.add(
            "'pipeline.source.webhook.hmac' is required",
            said.at(*_PATH, "webhook", "signature_type"),
            "write hmac: {header: X-Hub-Signature-256, secret: …}",
        )
        return keys, []
    place = said.at(*_PATH, "webhook", "hmac")
    name = f"{pipeline_name(said)}.webhook"
    signature = {
        "secret": name,
        "header": webhook.hmac.header,
        "prefix": f"{webhook.hmac.sig_key}=",
    }
    secret = Setting(path=("secrets", name), value=webhook.hmac.secret, at=place)
    return [*keys, entry("signature", signature, place)], [secret]


def _mqtt(said: Said, mqtt: MqttSpec) -> tuple[list[Entry], list[Setting]]:
    path = (*_PATH, "mqtt")
    scheme, parted, rest = mqtt.broker.partition("://")
    own = f"{_SCHEMES.get(scheme.lower(), scheme)}{parted}{rest}"
    keys = [
        entry("broker", own, said.at(*path, "broker")),
        entry("topics", list(mqtt.topics), said.at(*path, "topics")),
    ]
    if mqtt.client_id is not None:
        keys.append(entry("client_id", mqtt.client_id, said.at(*path, "client_id")))
    if mqtt.username is not None:
        keys.append(entry("user", mqtt.username, said.at(*path, "username")))
    if mqtt.password is None:
        return keys, []
    at, name = said.at(*path, "password"), f"{pipeline_name(said)}.mqtt"
    keys.append(entry("password", {"secret": name}, at))
    return keys, [Setting(path=("secrets", name), value=mqtt.password, at=at)]


def _about(
    said: Said, event_time: EventTimeSpec | None, typed: Typed, mistakes: Mistakes
) -> Iterator[Entry]:
    """Yield how messages are read, of whatever source."""
    kind = said.spec.pipeline.source.type
    if typed.columns is not None:
        yield entry("columns", typed.columns, typed.at)
    elif kind != "kafka":
        mistakes.add(
            f"the columns of a {kind} are not known before something comes",
            said.at(*_PATH, "type"),
            "write pipeline.source.columns: {action: VARCHAR, …}; of a topic its messages show "
            "them",
        )
    time, at = next(iter(typed.times), None), typed.at
    if event_time is not None:
        at = said.at(*_PATH, said.spec.pipeline.source.type, "event_time")
        time = event_time.path.removeprefix("$.")
        if "." in time or "/" in time:
            mistakes.add(
                f"the event time '{event_time.path}' lies inside another field",
                at,
                "name a field of the message itself",
            )
    if time is not None:
        yield entry("event_time", time, at)
        if typed.columns is None and kind == "kafka":
            yield entry("types", dict.fromkeys((time, *typed.times), "TIMESTAMP"), at)
    if typed.idle_timeout is not None:
        yield entry("idle_timeout", f"{typed.idle_timeout}s", typed.at)
    policy: OnErrorSpec = said.spec.pipeline.on_error
    yield entry("on_error", _ON_ERROR[policy.policy], said.at("pipeline", "on_error"))


def pipeline_name(said: Said) -> str:
    """Return what a pipeline is called: as its file says, in letters that a name may have."""
    written = said.spec.pipeline.name or said.file.name.rpartition(".")[0]
    return re.sub(r"[^A-Za-z0-9._-]+", "-", written).strip("-.")[:200] or "pipeline"


def free_name(name: str, source: Source) -> str:
    """Return a name for a relation that no topic has."""
    taken = {each.lower() for each in source.names}
    while name.lower() in taken:
        name = f"{name}_rows"
    return name
