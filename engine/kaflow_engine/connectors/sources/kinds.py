"""The kinds of sources there are that a file names: a table of names, loaded when they are used."""

from functools import lru_cache
from importlib import import_module

from kaflow_engine.connectors.sources.contract import SourceKind
from kaflow_engine.errors import UnknownName

SOURCES: dict[str, str] = {
    "clickhouse": "kaflow_engine.connectors.clickhouse.source.kind:ClickHouseKind",
    "files": "kaflow_engine.connectors.files.source.kind:FilesKind",
    "generator": "kaflow_engine.connectors.generator.kind:GeneratorKind",
    "hybrid": "kaflow_engine.connectors.hybrid.kind:HybridKind",
    "postgres": "kaflow_engine.connectors.postgres.source.kind:PostgresKind",
    "webhook": "kaflow_engine.connectors.journal.kind:JournalKind",
    "websocket": "kaflow_engine.connectors.journal.kind:JournalKind",
    "http": "kaflow_engine.connectors.journal.kind:JournalKind",
    "mqtt": "kaflow_engine.connectors.journal.kind:JournalKind",
    "pyspark": "kaflow_engine.connectors.pyspark.kind:PySparkKind",
}
"""Name → module and class of a `SourceKind`."""
PLUGIN = "kaflow_engine.connectors.plugin_sources.kind:PluginSourceKind"
"""Of all whose names have a dot."""


@lru_cache(maxsize=64)
def source_kind(name: str) -> SourceKind:
    """Return the kind of source of a name, imported on first use.

    Raises:
        UnknownName: There is none; says which there are.
    """
    known = name.partition(":")[0]
    target = SOURCES.get(known, PLUGIN if "." in name else None)
    if target is None:
        raise UnknownName("source", name, SOURCES)
    module, _, attribute = target.partition(":")
    found: SourceKind = getattr(import_module(module), attribute)()
    return found
