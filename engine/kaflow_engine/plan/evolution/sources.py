"""Inputs that come from somewhere else than before: their offsets are other records."""

from collections.abc import Iterator
from dataclasses import replace
from typing import assert_never, get_args

from kaflow_engine.flow.flow import Flow
from kaflow_engine.flow.origins.databases import ClickHouseParams, DatabaseParams, PostgresParams
from kaflow_engine.flow.origins.files import FilesParams
from kaflow_engine.flow.origins.hybrid import HybridParams, PhaseParams
from kaflow_engine.flow.origins.plugins import JournalledPluginParams, PluginParams, PySparkParams
from kaflow_engine.flow.origins.topics import TopicPlace
from kaflow_engine.flow.sources import (
    GeneratorParams,
    HttpParams,
    MqttParams,
    SourceParams,
    WebhookParams,
    WebsocketParams,
)


def other_sources(old: Flow, new: Flow) -> Iterator[str]:
    """Yield how the origins of inputs differ that both plans read.

    Where files are looked for may change: those that were found are known by their paths.

    Args:
        old: The plan of the state.
        new: The plan that will run.
    """
    was, now = _origins(old), _origins(new)
    for name in moved_sources(old, new):
        yield f"'{name}' is {_called(now[name], name)}, was {_called(was[name], name)}"


def moved_sources(old: Flow, new: Flow) -> tuple[str, ...]:
    """Return the inputs of both plans whose offsets mean other records than before."""
    was, now = _origins(old), _origins(new)
    both = (name for name in now if name in was)
    return tuple(name for name in both if _offsets_of(was[name]) != _offsets_of(now[name]))


def begun_again(old: Flow, new: Flow) -> tuple[str, ...]:
    """Return the inputs that a new state reads from their first record, where others go on: those
    that come from somewhere else, and tables that are loaded again, of which no rows are kept."""
    tables = (t.name for t in new.sources if t.is_kept and isinstance(t.connector, _KEEP_NO_ROWS))
    return tuple(dict.fromkeys((*moved_sources(old, new), *tables)))


def _origins(plan: Flow) -> dict[str, SourceParams | TopicPlace]:
    return {topic.name: topic.connector or topic.place for topic in plan.sources}


def _offsets_of(origin: SourceParams | TopicPlace) -> SourceParams | TopicPlace | str:
    """Return what decides which record an offset is."""
    match origin:
        case TopicPlace():
            return origin
        case FilesParams():
            return replace(origin, path="", settle=0)
        case GeneratorParams():
            return replace(origin, records=None)
        case PostgresParams() | ClickHouseParams():
            return replace(origin, page_size=None)
        case PluginParams():
            return replace(origin, bounded=False)
        case (
            WebhookParams()
            | WebsocketParams()
            | HttpParams()
            | MqttParams()
            | JournalledPluginParams()
            | PySparkParams()
        ):
            return "a journal"  # what was written down stays, wherever it came from
        case HybridParams(phases=phases):
            return replace(origin, phases=tuple(map(_without_size, phases)))
        case _:
            assert_never(origin)


def _without_size(phase: PhaseParams) -> PhaseParams:
    return phase if isinstance(phase, FilesParams) else replace(phase, page_size=None)


_KEEP_NO_ROWS = (*get_args(DatabaseParams), HybridParams)
"""Sources that keep no rows which were read."""


def _called(origin: SourceParams | TopicPlace, name: str = "") -> str:
    match origin:
        case TopicPlace():
            return "a topic" if str(origin) == name else f"topic '{origin}'"
        case FilesParams():
            return f"a source of {origin.format} files{' with a header' if origin.header else ''}"
        case GeneratorParams():
            values = ", ".join(f"{each.name} {each.distribution}" for each in origin.values)
            return f"a generator of {origin.rate:g} records a second, seed {origin.seed} ({values})"
        case WebhookParams():
            return "a webhook"
        case PostgresParams() | ClickHouseParams():
            key = origin.key if isinstance(origin, PostgresParams) else ()
            some = "" if origin.where is None else f" where {' '.join(origin.where.split())}"
            columns = f" ({', '.join(c.name for c in origin.columns)})" if origin.columns else ""
            by = f" by {', '.join(key)}" if key else ""
            start = origin.start_at if isinstance(origin, ClickHouseParams) else None
            by += f" from {start}" if start else ""
            called = f"{origin.type} table {origin.table} of connection {origin.connection}"
            return f"{called}{columns}{some}{by}"
        case WebsocketParams():
            return "a websocket"
        case HttpParams():
            return "a URL that is polled"
        case MqttParams():
            return "an MQTT broker"
        case PluginParams() | JournalledPluginParams():
            said = ", ".join(f"{name}: {value}" for name, value in origin.options)
            return f"plugin {origin.type} ({said})" if said else f"plugin {origin.type}"
        case PySparkParams():
            return f"PySpark's data source {origin.format}"
        case HybridParams(phases=phases, topic=topic, avro=avro):
            said = [_called(phase) for phase in phases]
            form = " of Avro" if avro else ""
            return "; then ".join([*said, *([f"topic {topic}{form}"] if topic else [])])
        case _:
            assert_never(origin)
