"""The kinds of sinks there are: a table of names, each loaded when it is used."""

from functools import lru_cache
from importlib import import_module

from kaflow_engine.connectors.contract import Outage, SinkKind
from kaflow_engine.errors import UnknownName

SINKS: dict[str, str] = {
    "delta": "kaflow_engine.connectors.delta.sink:DeltaTables",
    "kafka": "kaflow_engine.connectors.kafka.sink:KafkaTopics",
}
"""Name → module and class of a `SinkKind`."""


def sink_kind(name: str) -> SinkKind:
    """Return the kind of sink of a name, imported on first use.

    Raises:
        UnknownName: There is none; says which there are.
    """
    if name not in SINKS:
        raise UnknownName("sink", name, SINKS)
    return _loaded(SINKS[name])


def outage_of(error: BaseException) -> Outage | None:
    """Tell what an error of any outside system calls for; None: no one knows it."""
    for name in SINKS:
        if (answer := sink_kind(name).outage(error)) is not None:
            return answer
    return None


@lru_cache(maxsize=64)
def _loaded(target: str) -> SinkKind:
    module, _, attribute = target.partition(":")
    found: SinkKind = getattr(import_module(module), attribute)()
    return found
