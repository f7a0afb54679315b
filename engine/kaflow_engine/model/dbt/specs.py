"""What a property file says, as frozen data: sources, and what there is to know about models."""

from typing import Annotated, Literal

from pydantic import Discriminator, Field, Tag

from kaflow_engine.model.files.shapes import EACH, Shape
from kaflow_engine.model.names import Filled, Topic
from kaflow_engine.model.outputs.output_specs import ColumnSpec
from kaflow_engine.model.sources.any_source import source_tag
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
from kaflow_engine.model.sources.plugin_specs import PluginSourceSpec, PySparkSourceSpec
from kaflow_engine.model.sources.source_specs import FilesSourceSpec, GeneratorSourceSpec
from kaflow_engine.model.sources.topic_specs import TopicSpec
from kaflow_engine.model.spec import CHOICE, Spec, type_of


class PropertyColumn(ColumnSpec):
    """A column of a source's table or of a model."""

    name: Filled
    data_tests: tuple[object, ...] = ()
    """Checks of this column, as dbt writes them."""


class OfTables(Spec):
    """What is said of tables only."""

    dimension: bool = False
    """Whether its last record of each key is kept for ever."""


class TopicConfig(OfTables, TopicSpec):
    """How the topic behind a table is read."""

    type: Literal["kafka"] | None = None


class FilesConfig(OfTables, FilesSourceSpec):
    """How the files behind a table are read."""


class GeneratorConfig(OfTables, GeneratorSourceSpec):
    """How the records of a table are made up."""


class WebhookConfig(OfTables, WebhookSourceSpec):
    """Where the requests behind a table arrive."""


class PostgresConfig(OfTables, PostgresSourceSpec):
    """The table of a PostgreSQL database that stands behind one of a source."""


class ClickHouseConfig(OfTables, ClickHouseSourceSpec):
    """The table of a ClickHouse server that stands behind one of a source."""


class MySQLConfig(OfTables, MySQLSourceSpec):
    """The table of a MySQL database that stands behind one of a source."""


class SQLiteConfig(OfTables, SQLiteSourceSpec):
    """The table of a SQLite file that stands behind one of a source."""


class DuckDBConfig(OfTables, DuckDBSourceSpec):
    """The table of a DuckDB file that stands behind one of a source."""


class SqlConfig(OfTables, SqlSourceSpec):
    """The SQL that makes the table that stands behind one of a source."""


class HybridConfig(OfTables, HybridSourceSpec):
    """The phases behind a table, and the topic that follows them."""


class WebsocketConfig(OfTables, WebsocketSourceSpec):
    """Who sends the messages behind a table."""


class HttpConfig(OfTables, HttpSourceSpec):
    """What is asked for the records behind a table."""


class MqttConfig(OfTables, MqttSourceSpec):
    """Where the messages behind a table are subscribed to."""


class PySparkConfig(OfTables, PySparkSourceSpec):
    """Which data source of PySpark gives the rows of a table."""


class PluginConfig(OfTables, PluginSourceSpec):
    """Which plugin gives the rows of a table."""


_TOPIC = f"{CHOICE}topic"


def _choice(value: object) -> str:
    """Return the tag of what stands behind a table; an unknown `type` is reported with its key."""
    return source_tag(type_of(value)) or _TOPIC


class TableSpec(Spec):
    """A table of a source: a topic, or what its configuration says."""

    name: Filled
    description: str | None = None
    identifier: Topic | None = None
    """The topic; None: called as the table is."""
    config: Annotated[
        Annotated[TopicConfig, Tag(_TOPIC)]
        | Annotated[FilesConfig, Tag("\0files")]
        | Annotated[GeneratorConfig, Tag("\0generator")]
        | Annotated[WebhookConfig, Tag("\0webhook")]
        | Annotated[PostgresConfig, Tag("\0postgres")]
        | Annotated[ClickHouseConfig, Tag("\0clickhouse")]
        | Annotated[MySQLConfig, Tag("\0mysql")]
        | Annotated[SqlConfig, Tag("\0sql")]
        | Annotated[SQLiteConfig, Tag("\0sqlite")]
        | Annotated[DuckDBConfig, Tag("\0duckdb")]
        | Annotated[HybridConfig, Tag("\0hybrid")]
        | Annotated[WebsocketConfig, Tag("\0websocket")]
        | Annotated[HttpConfig, Tag("\0http")]
        | Annotated[MqttConfig, Tag("\0mqtt")]
        | Annotated[PySparkConfig, Tag("\0pyspark")]
        | Annotated[PluginConfig, Tag("\0plugin")],
        Discriminator(_choice),
    ] = TopicConfig()
    columns: tuple[PropertyColumn, ...] = ()


class SourceSpec(Spec):
    """Tables that belong together."""

    name: Filled
    description: str | None = None
    tables: tuple[TableSpec, ...] = ()


class ModelProperties(Spec):
    """What a property file says about a model."""

    name: Filled
    description: str | None = None
    config: dict[str, object] = Field(default={})
    """Keys of a pipeline file; what stands in the model's own `config` goes over it."""
    columns: tuple[PropertyColumn, ...] = ()
    meta: dict[str, object] = Field(default={})
    data_tests: tuple[object, ...] = ()
    """Checks of whole rows."""


class Properties(Spec):
    """One property file."""

    version: int | None = None
    """dbt's version of this format."""
    models: tuple[ModelProperties, ...] = ()
    sources: tuple[SourceSpec, ...] = ()
    unit_tests: tuple[object, ...] = ()
    """Read where tests are run."""


SHAPE = Shape(
    noun="key",
    free=frozenset({("sources", EACH, "tables", EACH, "config", "options")}),
    later={
        TableSpec: frozenset({"tests", "data_tests"}),
    },
)
