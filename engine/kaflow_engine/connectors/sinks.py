"""The kinds of sinks there are: a table of names, and plugins; each loaded when it is used."""

from functools import lru_cache
from importlib import import_module

from kaflow_engine.connectors.contract import SinkKind
from kaflow_engine.connectors.plugins import plugin
from kaflow_engine.errors import UnknownName

SINKS: dict[str, str] = {
    "blackhole": "kaflow_engine.connectors.blackhole.sink:Blackhole",
    "clickhouse": "kaflow_engine.connectors.clickhouse.sink:ClickHouseTables",
    "command": "kaflow_engine.connectors.command.sink:Commands",
    "console": "kaflow_engine.connectors.console.sink:Console",
    "delta": "kaflow_engine.connectors.delta.sink:DeltaTables",
    "files": "kaflow_engine.connectors.files.sink:FileFolders",
    "iceberg": "kaflow_engine.connectors.iceberg.sink:IcebergTables",
    "kafka": "kaflow_engine.connectors.kafka.sink:KafkaTopics",
    "postgres": "kaflow_engine.connectors.postgres.sink:PostgresTables",
    "webhook": "kaflow_engine.connectors.http.webhook:Webhooks",
}
"""Name → module and class of a `SinkKind`."""


def sink_kind(name: str) -> SinkKind:
    """Return the kind of sink of a name, imported on first use.

    Raises:
        UnknownName: There is none; says which there are.
        ModelError: A plugin cannot be loaded.
    """
    if "." in name:
        return plugin(name)
    if name not in SINKS:
        raise UnknownName("sink", name, SINKS)
    return _loaded(SINKS[name])


@lru_cache(maxsize=64)
def _loaded(target: str) -> SinkKind:
    module, _, attribute = target.partition(":")
    found: SinkKind = getattr(import_module(module), attribute)()
    return found
