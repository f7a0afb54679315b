"""The settings of Streamling, from its `config.yaml` and `STREAMLING__A__B`, as our configuration.

What has no effect here stays visible: as `vars.streamling.<name>`.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from functools import reduce
from urllib.parse import quote, urlsplit

from kaflow_engine.errors import Location, ModelError, UnknownName
from kaflow_engine.model.configuration.streamling.names import (
    BACKENDS,
    KNOWN,
    NOT_HERE,
    NUMBERS,
    SECTIONS,
    TELLING,
    is_known,
)
from kaflow_engine.model.configuration.streamling.plugins import PREPROCESSORS, preprocessors
from kaflow_engine.model.files.tree import Entries, Entry, Node, Scalar, lay_over

PREFIX = "STREAMLING__"
_DEFAULT = Location("Streamling's default")
BACKEND = ("state_backend", "backend_type")
GROUP = ("kafka_source", "consumer_group_id")
_OF_CLUSTERS = (
    *("brokers", "security_protocol", "sasl_mechanism", "sasl_username", "sasl_password"),
    *("schema_registry_url", "schema_registry_username", "schema_registry_password"),
)
"""What tells one cluster from another."""
SINKS = "kafka_sink"
"""What the cluster of sinks is called, where it is another one than that of sources."""
_KAFKA = ("kafka_source", SINKS)
_OVERRIDES: Mapping[str, tuple[str, ...]] = {
    "OTEL_EXPORTER_OTLP_METRICS_ENDPOINT": ("open_telemetry_metrics", "ingestion_endpoint"),
    "OTEL_EXPORTER_OTLP_PROTOCOL": ("open_telemetry_metrics", "endpoint_protocol"),
}
"""Variables of OpenTelemetry that stand above settings."""
_METRICS_PATH = "/v1/metrics"
"""What an endpoint of metrics ends with; ours is that of traces, too, and has no such end."""

Values = Mapping[tuple[str, ...], Scalar]
"""Settings by their names, each with where it stands."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Layers:
    """The settings as layers of the configuration."""

    defaults: Entries
    """What Streamling has where nothing is said; empty where no setting of it is said at all."""
    said: Entries
    mistakes: tuple[ModelError, ...]


def holds_settings(root: Node) -> bool:
    """Tell whether a configuration file is one of Streamling, and not of any other program."""
    return isinstance(root, Entries) and any(each.key in TELLING for each in root.entries)


def without_settings(root: Entries) -> Entries:
    """Return what else a configuration file says."""
    return replace(root, entries=tuple(e for e in root.entries if e.key not in SECTIONS))


def settings_layers(environment: Mapping[str, str], root: Entries | None) -> Layers:
    """Return the settings of Streamling as keys of our configuration.

    Args:
        environment: Variables.
        root: The configuration file, if there is one.
    """
    said = {**_of_file(root), **_of_environment(environment)}
    nothing = Entries(at=Location("environment"), entries=())
    if not said:
        return Layers(defaults=nothing, said=nothing, mistakes=())
    mistakes = [*_unknown(said), *_wrong_values(said)]
    embedded = {name: _scalar(text, _DEFAULT) for name, text in KNOWN.items() if text}
    if level := environment.get("RUST_LOG"):
        at = Location("environment RUST_LOG")
        said = {("log_level",): _scalar(_level(level), at), **said}
    for variable, name in _OVERRIDES.items():
        if text := environment.get(variable):
            said = {**said, name: _scalar(text, Location(f"environment {variable}"))}
    whole = {**embedded, **said}
    return Layers(
        defaults=_tree(_translated(embedded, embedded)),
        said=_tree(_translated(said, whole)),
        mistakes=tuple(mistakes),
    )


def _of_file(root: Entries | None) -> Values:
    found: dict[tuple[str, ...], Scalar] = {}

    def below(node: Node, path: tuple[str, ...]) -> None:
        match node:
            case Entries():
                for entry in node.entries:
                    below(entry.value, (*path, entry.key))
            case Scalar():
                if node.text:  # an empty one counts as not said, as in the environment
                    found[path] = node
            case _:
                texts = [item.text or "" for item in node.items if isinstance(item, Scalar)]
                found[path] = _scalar(",".join(texts), node.at)

    for entry in root.entries if root is not None else ():
        if entry.key in SECTIONS:
            below(entry.value, (entry.key,))
    return found


def _of_environment(environment: Mapping[str, str]) -> Values:
    return {
        tuple(name[len(PREFIX) :].lower().split("__")): _scalar(
            text, Location(f"environment {name}")
        )
        for name, text in sorted(environment.items())
        if name.upper().startswith(PREFIX) and text
    }


def _unknown(said: Values) -> Iterator[ModelError]:
    known = [".".join(name) for name in KNOWN]
    for name, value in said.items():
        if not is_known(name):
            yield UnknownName("setting of Streamling", ".".join(name), known, value.at)


def _wrong_values(said: Values) -> Iterator[ModelError]:
    for name, value in said.items():
        text = (value.text or "").lower()
        if name[-1] in NUMBERS and (not text.isdecimal() or int(text) == 0):
            message = f"'{'.'.join(name)}' must be a number greater than 0"
            yield ModelError(message, value.at)
        elif name == ("job_mode",) and text not in ("true", "false"):
            yield ModelError("'job_mode' must be true or false", value.at)
        elif name == BACKEND and text not in map(str.lower, BACKENDS):
            yield UnknownName("backend_type", value.text or "", BACKENDS, value.at)


def _apart(said: Values) -> bool:
    """Tell whether sinks write elsewhere than sources read: both say where, and not alike."""
    both = ((said.get((section, name)) for section in _KAFKA) for name in _OF_CLUSTERS)
    return any(a is not None and b is not None and a.text != b.text for a, b in both)


def _cluster(said: Values, whole: Values) -> Iterator[tuple[tuple[str, ...], Scalar]]:
    """Yield the cluster of sinks, where it is another one."""
    place = ("kafka", "clusters", SINKS)
    for name, value in whole.items():
        key = KNOWN_KEYS.get(name)
        if key is not None and name[0] == SINKS:
            yield (*place, *key[1:]), _converted(name, value)
    first = next(value for name, value in said.items() if name[0] == SINKS)
    yield ("vars", f"streamling.{SINKS}.cluster"), _scalar(SINKS, first.at)


def _translated(said: Values, whole: Values) -> Iterator[tuple[tuple[str, ...], Scalar]]:
    """Yield our keys with their values.

    Args:
        said: What is said.
        whole: That, and the defaults of what is not.
    """
    apart = _apart(said)
    if apart:
        yield from _cluster(said, whole)
    for name, value in said.items():
        key = KNOWN_KEYS.get(name)
        if key is not None and name[0] == SINKS:
            if apart or ("kafka_source", *name[1:]) in said:
                continue  # it is of the other cluster, or says the same
        if key is not None:
            yield key, _converted(name, value)
        kept = name in NOT_HERE or (name not in KNOWN and PREPROCESSORS not in name)
        if name == GROUP or (key is None and kept):
            yield ("vars", f"streamling.{'.'.join(name)}"), value
    yield from ((key, _scalar(text, at)) for key, text, at in preprocessors(said))
    for section in ("clickhouse_source", "clickhouse_sink"):
        yield from _clickhouse(section, said, whole)
    yield from _postgres(said, whole)
    yield from _registry(said, whole, apart=apart)


KNOWN_KEYS: Mapping[tuple[str, ...], tuple[str, ...]] = {
    **{
        (section, name): key
        for section in ("kafka_source", "kafka_sink")
        for name, key in {
            "brokers": ("kafka", "brokers"),
            "security_protocol": ("kafka", "properties", "security.protocol"),
            "sasl_mechanism": ("kafka", "properties", "sasl.mechanism"),
            "sasl_username": ("kafka", "properties", "sasl.username"),
            "sasl_password": ("kafka", "properties", "sasl.password"),
            "client_id": ("kafka", "properties", "client.id"),
        }.items()
    },
    ("kafka_source", "consumer_group_id"): ("kafka", "consumer", "group"),
    ("log_format",): ("logging", "format"),
    ("log_level",): ("logging", "level"),
    ("open_telemetry_metrics", "ingestion_endpoint"): ("otlp", "endpoint"),
    ("open_telemetry_metrics", "endpoint_protocol"): ("otlp", "protocol"),
    ("open_telemetry_metrics", "batch_interval_secs"): ("otlp", "interval"),
}
"""Settings that are one key of ours."""


def _converted(name: tuple[str, ...], value: Scalar) -> Scalar:
    text = value.text or ""
    match name[-1]:
        case "security_protocol":
            return _scalar(text.upper(), value.at)
        case "ingestion_endpoint":
            return _scalar(text.rstrip("/").removesuffix(_METRICS_PATH), value.at)
        case "endpoint_protocol":
            return _scalar(text.partition("/")[0], value.at)
        case "batch_interval_secs":
            return _scalar(f"{text}s", value.at)
        case _:
            return value


def _clickhouse(
    section: str, said: Values, whole: Values
) -> Iterator[tuple[tuple[str, ...], Scalar]]:
    group = [(section, name) for name in ("url", "user", "password", "database")]
    first = next((said[name] for name in group if name in said), None)
    if first is None:
        return
    key = ("clickhouse", "connections", section)
    url, database = (_text(whole, section, name) for name in ("url", "database"))
    path = urlsplit(url).path.strip("/")
    address = url if path or not database else f"{url.rstrip('/')}/{quote(database, safe='')}"
    yield (*key, "url"), _scalar(address, first.at)
    for name in ("user", "password"):
        if (section, name) in whole:
            yield (*key, name), whole[section, name]


def _postgres(said: Values, whole: Values) -> Iterator[tuple[tuple[str, ...], Scalar]]:
    names = ("host", "port", "user", "db", "sslmode", "pass")
    first = next((said["postgres_sink", n] for n in names if ("postgres_sink", n) in said), None)
    if first is None:
        return
    host, port, user, database, mode = (_text(whole, "postgres_sink", n) for n in names[:5])
    url = f"postgresql://{quote(user, safe='')}@{host}:{port}/{quote(database, safe='')}"
    key = ("postgres", "connections", "postgres_sink")
    yield (*key, "url"), _scalar(f"{url}?sslmode={quote(mode)}", first.at)
    if ("postgres_sink", "pass") in whole:
        yield (*key, "password"), whole["postgres_sink", "pass"]


def _registry(
    said: Values, whole: Values, *, apart: bool
) -> Iterator[tuple[tuple[str, ...], Scalar]]:
    for section in reversed(_KAFKA):
        parts = [(section, f"schema_registry_{name}") for name in ("url", "username", "password")]
        known = whole if apart and section == SINKS else said
        first = next((known[name] for name in parts if name in known), None)
        if first is None:
            continue
        url, user, password = (_text(whole, *name) for name in parts)
        login = quote(user, safe="") + (f":{quote(password, safe='')}@" if user else "")
        address = url.replace("://", f"://{login}", 1) if user else url
        of = ("kafka", "clusters", SINKS) if apart and section == SINKS else ("kafka",)
        yield (*of, "schemaRegistry"), _scalar(address, first.at)


def _text(values: Values, *name: str) -> str:
    found = values.get(name)
    return (found.text or "") if found is not None else ""


def _level(text: str) -> str:
    """Return the level for all of a filter such as `info,kafka=debug`."""
    plain = [part.strip().lower() for part in text.split(",") if "=" not in part]
    level = plain[0] if plain else "info"
    return "debug" if level == "trace" else level


def _scalar(text: str, at: Location) -> Scalar:
    return Scalar(at=at, text=text, written=text, value=text)


def _tree(values: Iterator[tuple[tuple[str, ...], Scalar]]) -> Entries:
    layers: list[Node] = []
    for path, value in values:
        node: Node = value
        for key in reversed(path):
            entry = Entry(key=key, at=value.at, value=node)
            node = Entries(at=value.at, entries=(entry,))
        layers.append(node)
    found = reduce(lay_over, layers, Entries(at=Location("environment"), entries=()))
    assert isinstance(found, Entries)
    return found
