"""What a pipeline file says of its outputs."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

from pydantic import Field, model_validator

from kaflow_engine.model.durations import Duration
from kaflow_engine.model.formats import FormatName, with_own_options
from kaflow_engine.model.key_formats import KeyFormat
from kaflow_engine.model.names import (
    ClusterName,
    Filled,
    HeaderOperation,
    OutputKey,
    TableName,
    Topic,
    topic_target,
)
from kaflow_engine.model.outputs.new_topic import NewTopicSpec
from kaflow_engine.model.outputs.side_output_specs import SideOutputSpec
from kaflow_engine.model.plugin_options import Option
from kaflow_engine.model.query_settings import Coalesce, QuerySettings
from kaflow_engine.model.spec import Path, Spec


def columns_of(key: OutputKey | None) -> tuple[str, ...]:
    """Return the columns that a key is made of."""
    return (key,) if isinstance(key, str) else key or ()


class SchemaSpec(Spec):
    """The schema that the values of an output have."""

    name: Filled = "Value"
    """Of the record, message or object."""
    fields: tuple[dict[str, object], ...] | None = None
    """The fields, as in an Avro schema; None: derived from the query."""


class KeySchemaSpec(Spec):
    """The schema that the keys of an output have."""

    name: Filled = "Key"
    """Of the record."""


class ColumnSpec(Spec):
    """What there is to know about a column."""

    description: str | None = None
    data_type: Filled | None = None
    """Its DuckDB type."""


class OutputSpec(Spec):
    """Where the rows go: to a topic, or into a table."""

    _own_options = model_validator(mode="before")(with_own_options)

    type: Literal["kafka", "delta"] | None = None
    """The kind of sink; None: `topic` or `table` says it."""
    topic: Topic | None = None
    cluster: ClusterName | None = None
    """Where the topic is, of `kafka.clusters`; None: where topics are that name none."""
    format: FormatName = "json"
    format_options: dict[str, Option] = Field(default={})
    """Options of the format of a plugin; `format` carries it behind the name of the plugin."""
    key: OutputKey | None = None
    """The output column that becomes the record's key, or several whose JSON object does; None:
    records have that of their row."""
    key_format: KeyFormat | None = None
    """None: that of a record's key which passes as it is, else text."""
    key_schema: KeySchemaSpec | None = None
    """Of Avro keys; None: derived from the query, as is all but the name."""
    schema_: SchemaSpec | None = Field(default=None, alias="schema")
    changes: Literal["append"] | None = None
    """Each change of a table is a record of its own; None: it replaces the one of its key."""
    operation: HeaderOperation | None = None
    """The header that says of a change what it does, `c`, `u` or `d`; deletes keep their row."""
    trace_context: bool = False
    """Records have the headers `traceparent` and `tracestate` of the record they are made of."""
    new_topic: NewTopicSpec | None = None
    """What the topic gets if it is not there."""
    table: TableName | None = None
    """A Delta table: its folder in the warehouse."""
    partition: Literal["hour", "day"] = "day"
    """Of event time, in a table."""
    interval: Duration = 10_000
    """How long rows are gathered, in ms, before they are added to a table."""
    coalesce: Coalesce | None = None
    """Of an aggregate; None: as under `emission`."""
    every: Duration | None = None
    """How long a key that sent a change holds the next one back, in ms; None: as under
    `emission`."""
    side_outputs: tuple[SideOutputSpec, ...] = ()
    """What sees rows before they leave."""

    @property
    def key_columns(self) -> tuple[str, ...]:
        """The columns that the key is made of."""
        return columns_of(self.key)

    @property
    def operation_header(self) -> str | None:
        """The name of the header that `operation` asks for."""
        return None if self.operation is None else self.operation.partition(":")[2]

    @property
    def target(self) -> str:
        """The name of the table, or of the topic, in front of it that of its cluster."""
        if self.topic is not None:
            return topic_target(self.topic, self.cluster or "")
        return self.table or ""


class SinkSpec(Spec):
    """What outputs of a kind that `type` names have in common; each kind adds its settings."""

    type: Any
    """The kind; each class takes one name."""
    key: OutputKey | None = None
    """The output column that is the key of a row, or several that are it together."""
    coalesce: Coalesce | None = None
    """Of an aggregate; None: as under `emission`."""
    side_outputs: tuple[SideOutputSpec, ...] = ()
    """What sees rows before they leave."""

    @property
    def key_columns(self) -> tuple[str, ...]:
        """The columns that the key is made of."""
        return columns_of(self.key)

    @property
    def kind(self) -> str:
        """The kind of sink, a name of `connectors.sinks`."""
        return str(self.type)

    @property
    def called(self) -> str:
        """What the output is called among those of its kind."""
        raise NotImplementedError

    @property
    def target(self) -> str:
        """What the output is called; topics and tables have no `:` in their names."""
        return f"{self.kind}:{self.called}"

    @property
    def is_shared(self) -> bool:
        """Whether others may read what it holds, and find it under the name of the output."""
        return False

    @property
    def replaces(self) -> bool:
        """Whether rows replace each other though the query makes each one more."""
        return False

    @property
    def settings(self) -> Mapping[str, str | int | bool | None]:
        """What the plan keeps of it beside the key; no secrets."""
        return {}


class ListedPart(QuerySettings):
    """What one of several outputs says besides: what is written there, and when its rows leave."""

    from_: Filled | None = Field(default=None, alias="from")
    """The relation whose rows are written."""
    query: Filled | None = None
    """What is written, instead of the rows of a relation."""
    description: str | None = None
    """What it is, for those who read `explain` and Dagster's page."""
    columns: dict[str, ColumnSpec] = Field(default={})
    """About its columns, by name."""
    checks: tuple[dict[str, object], ...] = ()
    """What its rows should have in common."""


class ListedOutputSpec(ListedPart, OutputSpec):
    """A topic or table as one of several outputs."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Write:
    """One output of a pipeline with the query behind it, in whichever form the file says it."""

    output: OutputSpec
    """Without topic and table where `sink` says where rows go."""
    sink: SinkSpec | None = None
    """An output whose kind the file names."""
    query: str | None
    relation: str | None
    """Whose rows are written where there is no query."""
    at: Path
    """Where the output is described."""
    query_at: Path
    """Where the query stands, or the relation is named."""
    description: str | None
    columns: Mapping[str, ColumnSpec]
    columns_at: Path
    checks: tuple[dict[str, object], ...]
    checks_at: Path

    @property
    def target(self) -> str:
        """What the output is called."""
        return self.sink.target if self.sink else self.output.target

    @property
    def is_keyed(self) -> bool:
        """Whether rows have a key beside their columns, as those of a table have not."""
        return self.sink is not None or self.output.topic is not None


def write_of(output: OutputSpec | SinkSpec) -> tuple[OutputSpec, SinkSpec | None]:
    """Return what every output says, and what one of a kind that the file names says besides."""
    if isinstance(output, SinkSpec):
        beside = OutputSpec(
            key=output.key, coalesce=output.coalesce, side_outputs=output.side_outputs
        )
        return beside, output
    return output, None


def listed(number: int, entry: ListedPart) -> Write:
    """Return one of several outputs with the query behind it."""
    assert isinstance(entry, OutputSpec | SinkSpec)
    at: Path = ("outputs", number)
    output, sink = write_of(entry)
    return Write(
        output=output,
        sink=sink,
        query=entry.query,
        relation=entry.from_,
        at=at,
        query_at=(*at, "query" if entry.query else "from"),
        description=entry.description,
        columns=entry.columns,
        columns_at=(*at, "columns"),
        checks=entry.checks,
        checks_at=(*at, "checks"),
    )
