"""The sources of a Streamling file, kind by kind, as frozen data."""

from typing import Annotated, Literal

from pydantic import AfterValidator, Field

from kaflow_engine.model.names import Filled, Topic, refuse
from kaflow_engine.model.outputs.sink_names import clickhouse_table
from kaflow_engine.model.spec import Spec
from kaflow_engine.model.streamling.node_specs import Columns, NodeSpec

ValueFormat = Literal["avro", "json"]


def _table(text: str) -> str:
    return clickhouse_table(text, "table_name")


def _first_key(value: str | None) -> str | None:
    if value == "latest":
        raise refuse("cannot be 'latest' of a table", "write the first value of its sorting key")
    return None if value == "earliest" else value


FirstKey = Annotated[Filled | None, AfterValidator(_first_key)]
"""The least value of the first column of a table's sorting key; None: its first row."""


class KafkaSource(NodeSpec):
    """Records of a topic."""

    type: Literal["kafka"]
    topic: Topic
    data_format: ValueFormat = "avro"
    schema_: dict[str, Filled] = Field(default={}, alias="schema")
    """Columns of JSON records, with their types; none: from the registry, or a sample."""
    filter: Filled | None = None
    include_metadata: bool = False
    starting_offsets: Literal["earliest", "latest"] = "earliest"


class BoundedSource(Spec):
    """A table that a hybrid source reads first."""

    source_type: Literal["clickhouse"]
    table_name: Annotated[Filled, AfterValidator(_table)]
    columns: Columns = ()
    filter: Filled | None = None
    start_at: FirstKey = None


class UnboundedSource(Spec):
    """The topic that a hybrid source goes on with."""

    source_type: Literal["kafka"]
    topic: Topic
    data_format: ValueFormat = "avro"
    filter: Filled | None = None
    start_at: Filled = "earliest"
    """`earliest`, `latest` or a time."""


class OffsetTable(Spec):
    """Where the archive says which record of the topic a row was."""

    topic_name: Topic | None = None
    table_name: Filled | None = None
    topic_column: Filled | None = None
    partition_column: Filled
    offset_column: Filled


def _some(sources: tuple[BoundedSource, ...]) -> tuple[BoundedSource, ...]:
    if not sources:
        raise refuse("must name a table", "add - {source_type: clickhouse, table_name: …}")
    return sources


class HybridSource(NodeSpec):
    """Tables one after the other, and then a topic."""

    type: Literal["hybrid"]
    bounded_sources: Annotated[tuple[BoundedSource, ...], AfterValidator(_some)]
    unbounded_source: UnboundedSource | None = None
    offset_table: OffsetTable | None = None
    schema_: dict[str, Filled] = Field(default={}, alias="schema")


class ClickHouseSource(NodeSpec):
    """A table, read once."""

    type: Literal["clickhouse"]
    table_name: Annotated[Filled, AfterValidator(_table)]
    columns: Columns = ()
    filter: Filled | None = None
    start_at: FirstKey = None


class FileSource(NodeSpec):
    """Files of a folder."""

    type: Literal["file"]
    path: Filled
    format: Literal["parquet", "json", "csv"] = "parquet"
    schema_: dict[str, Filled] = Field(default={}, alias="schema")
