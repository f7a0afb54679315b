"""How the records of an input are read, be it a topic or another source."""

from typing import Annotated, Literal

from pydantic import BeforeValidator, Field, model_validator

from kaflow_engine.model.durations import Duration
from kaflow_engine.model.formats import FormatName, with_own_options
from kaflow_engine.model.key_formats import KeyFormat
from kaflow_engine.model.names import ClusterName, Filled, Operation, Topic
from kaflow_engine.model.plugin_options import Option
from kaflow_engine.model.spec import Spec


class HistorySpec(Spec):
    """What there is of a topic's past: versions that are kept, and files that hold records."""

    keep: Duration | None = None
    """How long old versions are kept for `as_of`; None: for ever."""
    path: Filled | None = None
    """A folder, a file or a pattern: records of the topic that came before what is read of it."""
    format: Literal["parquet", "json", "delta"] = "parquet"
    partition: Filled = "partition"
    """The column with the partition of a record in its topic."""
    offset: Filled = "offset"
    timestamp: Filled = "timestamp"
    key: Filled | None = None
    """The column with the key; None: `key`, where there is such a column."""
    value: Filled | None = None
    """The column with the value as it was in the topic; None: all columns are the value."""


def _history(value: object) -> object:
    return {"keep": value} if isinstance(value, str | int) else value


class RecordsSpec(Spec):
    """How records are read, wherever they come from."""

    description: str | None = None
    """What it is, for those who read `explain` and Dagster's page."""
    columns: dict[str, Filled] | None = None
    """Column name to DuckDB type; None: from the schema registry, or a sample."""
    event_time: Filled | None = None
    """Column that holds the event time; None: the timestamp of the record."""
    lateness: Duration = 0
    """How far behind the greatest event time a record may come."""
    idle_timeout: Duration = 30_000
    """After how long without records a partition no longer holds the watermark back."""
    max_future: Duration = 86_400_000
    """How far ahead of the clock an event time may be; beyond it the record is a bad one."""
    on_error: Literal["dead_letter", "skip", "fail"] = "dead_letter"
    """What becomes of a record that cannot be read."""
    lookup: Literal["current", "as_of"] = "current"
    """Which version of a dimension a join finds: that of now, or that of the event's time."""
    table: bool = False
    """The last record of a key is the row of a table; a null value deletes it."""
    primary_key: tuple[Filled, ...] = ()
    """Columns that are the key of a table; none: the key of the record."""
    operation: Operation | None = None
    """What says whether a record inserts, updates or deletes: `header:<name>` or
    `column:<name>`."""
    retain: Duration | None = None
    """How long a row of a table stays that nothing changes, in ms; None: for ever."""


class TopicSpec(RecordsSpec):
    """How one input topic is read."""

    _own_options = model_validator(mode="before")(with_own_options)

    types: dict[str, Filled] = Field(default={})
    """DuckDB types of some columns, where the others are as the records show them."""
    wait_for: bool = False
    """A topic that does not exist yet, or has no record that shows its columns, is waited for
    without end."""

    cluster: ClusterName | None = None
    """Where it is, of `kafka.clusters`; None: where topics are that name none."""
    topic: Topic | None = None
    """What it is called there; None: as queries call it."""
    format: FormatName | None = None
    format_options: dict[str, Option] = Field(default={})
    """Options of the format of a plugin; `format` carries it behind the name of the plugin."""
    on_null: Literal["skip", "row"] = "skip"
    """What a null value of an event is: nothing, or a row of NULLs."""
    on_data_loss: Literal["fail", "continue"] = "fail"
    """What to do when records that were not read yet are gone."""
    on_schema_change: Literal["ignore", "add_nullable", "fail"] = "ignore"
    """What to do when records name another registered schema than at the start."""
    history: Annotated[HistorySpec, BeforeValidator(_history)] = HistorySpec()
    """A duration alone is `keep`."""
    key: Filled | None = None
    """Column that the Kafka key of a dimension is; None: the join key."""
    key_format: KeyFormat = "text"
    key_type: Filled | None = None
    """DuckDB type of a key that is JSON."""


class TopicSchemaSpec(TopicSpec):
    """How one topic is read by a front end that takes no columns from records."""

    key_columns: dict[str, Filled] = Field(default={})
    """Fields of a key that is a JSON object with their types; a field of a field is `a.b`."""
    nullable: tuple[Filled, ...] = ()
    """Those of `columns` that can be NULL; a field of a field is `a.b`."""
