"""What each of `sources` may be: one kind of source, named by its `type`."""

from typing import Annotated

from pydantic import Discriminator, Tag

from kaflow_engine.model.sources.attached_specs import (
    DuckDBSourceSpec,
    MySQLSourceSpec,
    SQLiteSourceSpec,
    SqlSourceSpec,
)
from kaflow_engine.model.sources.database_specs import ClickHouseSourceSpec, PostgresSourceSpec
from kaflow_engine.model.sources.hybrid_specs import HybridSourceSpec
from kaflow_engine.model.sources.live_specs import (
    HttpSourceSpec,
    MqttSourceSpec,
    WebhookSourceSpec,
    WebsocketSourceSpec,
)
from kaflow_engine.model.sources.plugin_specs import (
    PYSPARK,
    PluginSourceSpec,
    PySparkSourceSpec,
)
from kaflow_engine.model.sources.source_specs import FilesSourceSpec, GeneratorSourceSpec
from kaflow_engine.model.spec import CHOICE, type_of

SOURCE_TYPES = (
    *("clickhouse", "duckdb", "files", "generator", "http", "hybrid"),
    *("mqtt", "mysql", "postgres", "sql", "sqlite", "webhook", "websocket"),
)
_FIRST = f"{CHOICE}files"


def source_tag(kind: object) -> str | None:
    """Return the tag of a kind of source; None: there is no such kind.

    >>> source_tag("files"), source_tag("acme.orders"), source_tag("pyspark:fake"), source_tag("x")
    ('\\x00files', '\\x00plugin', '\\x00pyspark', None)
    """
    if not isinstance(kind, str):
        return None
    if kind.startswith(PYSPARK):
        return f"{CHOICE}pyspark"
    if "." in kind:
        return f"{CHOICE}plugin"
    return f"{CHOICE}{kind}" if kind in SOURCE_TYPES else None


def _choice(value: object) -> str:
    """Return the tag of what a source is; an unknown `type` is reported with its key."""
    return source_tag(type_of(value)) or _FIRST


AnySource = Annotated[
    Annotated[FilesSourceSpec, Tag("\0files")]
    | Annotated[ClickHouseSourceSpec, Tag("\0clickhouse")]
    | Annotated[DuckDBSourceSpec, Tag("\0duckdb")]
    | Annotated[GeneratorSourceSpec, Tag("\0generator")]
    | Annotated[HttpSourceSpec, Tag("\0http")]
    | Annotated[HybridSourceSpec, Tag("\0hybrid")]
    | Annotated[MqttSourceSpec, Tag("\0mqtt")]
    | Annotated[MySQLSourceSpec, Tag("\0mysql")]
    | Annotated[PluginSourceSpec, Tag("\0plugin")]
    | Annotated[PostgresSourceSpec, Tag("\0postgres")]
    | Annotated[PySparkSourceSpec, Tag("\0pyspark")]
    | Annotated[SqlSourceSpec, Tag("\0sql")]
    | Annotated[SQLiteSourceSpec, Tag("\0sqlite")]
    | Annotated[WebhookSourceSpec, Tag("\0webhook")]
    | Annotated[WebsocketSourceSpec, Tag("\0websocket")],
    Discriminator(_choice),
]
"""What each of `sources` may be."""
