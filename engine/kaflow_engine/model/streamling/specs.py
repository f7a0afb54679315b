"""The nodes of a Streamling file, kind by kind, as frozen data."""

from functools import partial
from typing import Annotated, Literal

from pydantic import AfterValidator, BeforeValidator, Discriminator, Field, Tag

from kaflow_engine.model.names import Filled, Topic, public_url, refuse
from kaflow_engine.model.outputs.connected_specs import Comparison
from kaflow_engine.model.outputs.connection_specs import public_headers
from kaflow_engine.model.outputs.sink_names import clickhouse_table
from kaflow_engine.model.relations.transform_specs import ITS_SECRET, SECRET_HEADERS
from kaflow_engine.model.spec import CHOICE, Spec, type_of
from kaflow_engine.model.streamling.node_specs import (
    NodeSpec,
    PluginNodeSpec,
    PluginReadingSpec,
    ReadingSpec,
)
from kaflow_engine.model.streamling.source_specs import (
    ClickHouseSource,
    FileSource,
    HybridSource,
    KafkaSource,
    ValueFormat,
)

_HANDLER = "send rows through a handler, which has secret_headers, to a blackhole"


class SqlTransform(NodeSpec):
    """A query over what it names."""

    type: Literal["sql"]
    sql: Filled


class _ServiceSpec(ReadingSpec):
    """Something that is sent rows by HTTP."""

    url: Annotated[Filled, AfterValidator(partial(public_url, instead=SECRET_HEADERS))]
    headers: Annotated[
        dict[str, str], AfterValidator(partial(public_headers, instead=ITS_SECRET))
    ] = Field(default={})
    one_row_per_request: bool = False
    payload_version: Literal["0", "1"] = "0"


class HandlerTransform(_ServiceSpec):
    """A service that is asked about rows."""

    type: Literal["handler"]
    schema_override: dict[str, Filled | None] = Field(default={})
    secret_headers: dict[str, Filled] = Field(default={})
    """Headers, each with the name of one of `secrets` in the configuration."""


class ScriptTransform(ReadingSpec):
    """A script that is called with each row."""

    type: Literal["script"]
    language: Literal["javascript", "typescript"]
    script: Filled
    schema_: dict[str, Filled | None] = Field(default={}, alias="schema")


def _backend(value: object) -> object:
    squeezed = str(value).lower().replace("-", "").replace("_", "").replace(" ", "")
    return squeezed if squeezed in ("postgres", "inmemory") else value


class DynamicTable(NodeSpec):
    """A set of values that queries ask."""

    type: Literal["dynamic_table"]
    backend_type: Annotated[Literal["postgres", "inmemory"], BeforeValidator(_backend)]
    backend_entity_name: Filled
    sql: Filled | None = None
    schema_: Filled = Field(default="streamling", alias="schema")
    column: Filled = "value"


class PrintSink(ReadingSpec):
    """Lines on the standard output."""

    type: Literal["print"]
    sample_every: int | None = Field(default=None, gt=0)
    """Of so many rows one is printed; None: as the settings say."""


class BlackholeSink(ReadingSpec):
    """Nothing."""

    type: Literal["blackhole"]


class WebhookSink(_ServiceSpec):
    """Rows as requests."""

    type: Literal["webhook"]
    url: Annotated[Filled, AfterValidator(partial(public_url, instead=_HANDLER))]
    headers: Annotated[
        dict[str, str], AfterValidator(partial(public_headers, instead=_HANDLER))
    ] = Field(default={})
    skip_on_error: bool = False
    """Accepted and without effect: rows that are refused are dead letters, and the others go on."""


class PostgresSink(ReadingSpec):
    """A table that is created where it is missing."""

    type: Literal["postgres"]
    schema_: Filled = Field(alias="schema")
    table: Filled
    on_conflict: Literal["update", "nothing"] = "update"
    update_where: dict[Filled, Comparison] = Field(default={})
    deduplicate: bool = True
    """Accepted and without effect: the last row of a key stays, or each decides in its turn."""


class GroupColumn(Spec):
    """A column by which rows are grouped."""

    from_: Filled | None = Field(default=None, alias="from")
    type: Filled | None = None


class AggregateColumn(GroupColumn):
    """What is computed of a group."""

    fn: Literal["avg", "count", "max", "min", "sum"]


def _aggregates(given: dict[str, AggregateColumn]) -> dict[str, AggregateColumn]:
    if not given:
        raise refuse("must have a column", "add total: {fn: count}")
    return given


class PostgresAggregateSink(ReadingSpec):
    """A table with a row for each group."""

    type: Literal["postgres_aggregate"]
    schema_: Filled = Field(alias="schema")
    landing_table: Filled
    agg_table: Filled
    group_by: dict[str, GroupColumn] = Field(default={})
    aggregate: Annotated[dict[str, AggregateColumn], AfterValidator(_aggregates)]


class KafkaSink(ReadingSpec):
    """Records of a topic."""

    type: Literal["kafka"]
    topic: Topic
    topic_partitions: int | None = Field(default=None, gt=0)
    data_format: ValueFormat = "avro"


class ClickHouseSink(ReadingSpec):
    """A table that is there."""

    type: Literal["clickhouse"]
    table: Annotated[Filled, AfterValidator(clickhouse_table)]
    append_only_mode: bool = True
    version_column_name: Filled | None = None
    """None: a table of ours, with `_version` and `_deleted`."""
    compression: Literal["none", "gzip"] | None = None
    compression_level: int | None = Field(default=None, ge=0, le=9)


SOURCES = ("clickhouse", "file", "hybrid", "kafka")
TRANSFORMS = ("dynamic_table", "handler", "script", "sql")
SINKS = ("blackhole", "clickhouse", "kafka", "postgres", "postgres_aggregate", "print", "webhook")


def _tag(known: tuple[str, ...], value: object) -> str:
    kind = type_of(value)
    return f"{CHOICE}{kind}" if kind in known else f"{CHOICE}plugin"


AnySource = Annotated[
    Annotated[KafkaSource, Tag("\0kafka")]
    | Annotated[HybridSource, Tag("\0hybrid")]
    | Annotated[ClickHouseSource, Tag("\0clickhouse")]
    | Annotated[FileSource, Tag("\0file")]
    | Annotated[PluginNodeSpec, Tag("\0plugin")],
    Discriminator(lambda value: _tag(SOURCES, value)),
]
AnyTransform = Annotated[
    Annotated[SqlTransform, Tag("\0sql")]
    | Annotated[HandlerTransform, Tag("\0handler")]
    | Annotated[ScriptTransform, Tag("\0script")]
    | Annotated[DynamicTable, Tag("\0dynamic_table")]
    | Annotated[PluginReadingSpec, Tag("\0plugin")],
    Discriminator(lambda value: _tag(TRANSFORMS, value)),
]
AnySink = Annotated[
    Annotated[PrintSink, Tag("\0print")]
    | Annotated[BlackholeSink, Tag("\0blackhole")]
    | Annotated[WebhookSink, Tag("\0webhook")]
    | Annotated[PostgresSink, Tag("\0postgres")]
    | Annotated[PostgresAggregateSink, Tag("\0postgres_aggregate")]
    | Annotated[KafkaSink, Tag("\0kafka")]
    | Annotated[ClickHouseSink, Tag("\0clickhouse")]
    | Annotated[PluginReadingSpec, Tag("\0plugin")],
    Discriminator(lambda value: _tag(SINKS, value)),
]


class Topology(Spec):
    """A whole file."""

    sources: dict[str, AnySource]
    transforms: dict[str, AnyTransform] = Field(default={})
    sinks: dict[str, AnySink]
