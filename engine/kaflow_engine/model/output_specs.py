"""What a pipeline file says of its outputs."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

from pydantic import Field

from kaflow_engine.model.durations import Duration
from kaflow_engine.model.formats import FormatName
from kaflow_engine.model.names import Filled, TableName, Topic
from kaflow_engine.model.spec import Path, Spec

Coalesce = Literal["batch", "none"]
"""Whether changes of one key in one batch leave as one."""


class SchemaSpec(Spec):
    """The schema that the values of an output have."""

    name: Filled = "Value"
    """Of the record, message or object."""
    fields: tuple[dict[str, object], ...] | None = None
    """The fields, as in an Avro schema; None: derived from the query."""


class ColumnSpec(Spec):
    """What there is to know about a column."""

    description: str | None = None
    data_type: Filled | None = None
    """Its DuckDB type."""


class OutputSpec(Spec):
    """Where the rows go: to a topic, or into a table."""

    topic: Topic | None = None
    format: FormatName = "json"
    key: Filled | None = None
    """The output column that becomes the record's key; None: records without a key."""
    schema_: SchemaSpec | None = Field(default=None, alias="schema")
    table: TableName | None = None
    """A Delta table: its folder in the warehouse."""
    partition: Literal["hour", "day"] = "day"
    """Of event time, in a table."""
    interval: Duration = 10_000
    """How long rows are gathered, in ms, before they are added to a table."""
    coalesce: Coalesce | None = None
    """Of an aggregate; None: as under `emission`."""

    @property
    def target(self) -> str:
        """The name of the topic or table."""
        return self.topic or self.table or ""


class ListedOutputSpec(OutputSpec):
    """One of several outputs: also what is written there."""

    from_: Filled | None = Field(default=None, alias="from")
    """The relation whose rows are written."""
    query: Filled | None = None
    """What is written, instead of the rows of a relation."""
    description: str | None = None
    columns: dict[str, ColumnSpec] = Field(default={})
    """About its columns, by name."""
    checks: tuple[dict[str, object], ...] = ()
    """What its rows should have in common; see `model.checks`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Write:
    """One output of a pipeline with the query behind it, in whichever form the file says it."""

    output: OutputSpec
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


def listed(number: int, entry: ListedOutputSpec) -> Write:
    """Return one of several outputs with the query behind it."""
    at: Path = ("outputs", number)
    return Write(
        output=entry,
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
