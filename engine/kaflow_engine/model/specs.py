"""What a pipeline file says, as frozen data."""

from collections.abc import Mapping, Sequence
from datetime import date
from typing import Annotated, Literal, cast

from pydantic import (
    AfterValidator,
    BeforeValidator,
    Field,
    ValidationInfo,
    field_validator,
)

from kaflow_engine.errors import Location
from kaflow_engine.model.brought.nodes import FileMetrics
from kaflow_engine.model.brought.positions import PositionParams
from kaflow_engine.model.brought.settings import Brought
from kaflow_engine.model.brought.suggestions import Suggestion
from kaflow_engine.model.durations import Duration
from kaflow_engine.model.names import (
    ClusterName,
    Cron,
    Filled,
    GroupName,
    Name,
    Topic,
    topic_target,
)
from kaflow_engine.model.outputs.output_specs import (
    ColumnSpec,
    Write,
    listed,
    write_of,
)
from kaflow_engine.model.outputs.sink_names import postgres_table
from kaflow_engine.model.outputs.sink_specs import AnyListedOutput, AnyOutput
from kaflow_engine.model.query_settings import (
    AggregationSpec,
    EmissionSpec,
    Lookup,
    RowTime,
    StateSpec,
    Within,
)
from kaflow_engine.model.relations.dynamic_table_specs import DynamicTableSpec
from kaflow_engine.model.relations.relation_specs import OF_READINGS, RelationSpec
from kaflow_engine.model.relations.transform_specs import AnyRelation, AnyTransform, TransformSpec
from kaflow_engine.model.sources.any_source import AnySource
from kaflow_engine.model.sources.nulls import NullChecks
from kaflow_engine.model.sources.schema_first import SchemaFirst
from kaflow_engine.model.sources.topic_specs import TopicSpec
from kaflow_engine.model.spec import Path, Spec

INLINE = Location("<inline>")
"""Where a specification stands that was written in Python."""


def _tags(value: object) -> object:
    tags = cast(Sequence[object], value) if isinstance(value, list) else None
    if tags is None or not all(isinstance(tag, str) for tag in tags):
        return cast(object, value)
    return {tag: "" for tag in tags}


class DeadLetterSpec(Spec):
    """Where bad records go, and how many are too many."""

    type: Literal["kafka", "files", "postgres"] | None = None
    """None: a topic, or files, where the pipeline uses no topics."""
    connection: Filled | None = None
    """A name under `postgres.connections` of the configuration; None: `default`."""
    table: Annotated[str, AfterValidator(postgres_table)] | None = None
    """Of a database; created unless it is there."""
    topic: Topic | None = None
    """None: `<name>.dead_letters`, or files, where the pipeline uses no topics."""
    cluster: ClusterName | None = None
    """Where that topic is, and the pipeline's own one, which knows its runs; None: where topics
    are that name no cluster, or the only one that has topics of the pipeline."""
    max_rate: float | None = Field(default=None, gt=0, allow_inf_nan=False)
    max_count: int | None = Field(default=None, gt=0)


class BackfillSpec(Spec):
    """What a backfill must know."""

    slack: Duration = 3_600_000
    """How far a record's event time may be from its Kafka timestamp, in ms."""
    start: date | None = None
    """The first partition of a table; None: the first day of last year."""
    schedule: Cron | None = None
    """When Dagster fills the newest partition of a table that is over; None: never by itself."""


class PipelineSpec(Spec):
    """One pipeline, as its author wrote it."""

    name: Name
    id: Name = Field(default="", validate_default=True)
    """Names the pipeline's state, markers and consumer group; default: the name."""
    description: str | None = None
    columns: dict[str, ColumnSpec] = Field(default={})
    """About output columns, by name."""
    owners: tuple[Filled, ...] = ()
    consumer_group: Filled | None = None
    """Where offsets are reported, and at whose committed offsets a first start begins; None: the
    group that the configuration says, or `kaflow-<id>`, and a first start begins as that says."""
    auto_offset_reset: Literal["earliest", "latest"] | None = None
    """Where events begin of which that group has no offset; None: as the configuration says."""
    group: GroupName | None = None
    """Pipelines of one group share a run, and one JVM, where something else than `kaflow run`
    starts them; Dagster shows their assets together."""
    meta: dict[str, str] = Field(default={})
    """Whatever else there is to say; shown, and used for nothing."""
    tags: Annotated[dict[str, str], BeforeValidator(_tags)] = Field(default={})
    window: Duration | None = None
    query: Filled | None = None
    relations: dict[str, AnyRelation] = Field(default={})
    """Named queries, readings, transforms and dynamic tables, by the name after FROM."""
    output: AnyOutput | None = None
    """Where the rows of `query` go."""
    outputs: tuple[AnyListedOutput, ...] = ()
    """Instead of `query` and `output`: several, each with what is written there."""
    emission: EmissionSpec = EmissionSpec()
    within: Within = None
    row_time: RowTime = "driving"
    lookup: Lookup = "current"
    aggregation: AggregationSpec | None = None
    """Of each GROUP BY; None: the defaults."""
    state: StateSpec = StateSpec()
    topics: dict[str, TopicSpec] = Field(default={})
    sources: dict[str, AnySource] = Field(default={})
    """Inputs that are no topics, by the name that queries read them by."""
    delivery: Literal["exactly_once", "at_least_once"] = "exactly_once"
    dead_letters: DeadLetterSpec = DeadLetterSpec()
    on_dimension_update: Literal["ignore", "reemit"] = "ignore"
    dimensions_first: bool = True
    ordered: bool = True
    backfill: BackfillSpec = BackfillSpec()
    checks: tuple[dict[str, object], ...] = ()
    """What rows should have in common; see `model.checks`."""
    partitions: int | None = Field(default=None, gt=0, le=256)
    """State partitions; None: chosen from the machine. Keys are spread over 256 shards."""
    at: Location = Field(default=INLINE, exclude=True)
    """Where the pipeline begins; not a key of the file."""
    places: Mapping[Path, Location] = Field(default={}, exclude=True, repr=False)
    """Where every key stands; not a key of the file."""
    nulls: NullChecks = Field(default=NullChecks(), exclude=True, repr=False)
    """Where NULL may not stand, as its front end found; not a key of the file."""
    schema_first: SchemaFirst | None = Field(default=None, exclude=True, repr=False)
    """None: columns may come from a sample of records; not a key of the file."""
    suggestions: tuple[Suggestion, ...] = Field(default=(), exclude=True, repr=False)
    """What its front end would say better; not a key of the file."""
    file_metrics: FileMetrics = Field(default=FileMetrics(), exclude=True, repr=False)
    """What metrics of another system its front end asks for; not a key of the file."""
    brought: Brought = Field(default=Brought(), exclude=True, repr=False)
    """What its file says of the configuration; not a key of the file."""
    positions: PositionParams | None = Field(default=None, exclude=True, repr=False)
    """What its front end knows of another program that has read its topics; not a key of the
    file."""

    @field_validator("id", mode="before")
    @classmethod
    def _default_id(cls, value: object, info: ValidationInfo) -> object:
        # Where the name is wrong, that is the one mistake to report.
        return info.data.get("name", "_") if value in ("", None) else value

    @property
    def writes(self) -> tuple[Write, ...]:
        """The outputs in the order of the file, one at least of a sound file."""
        return (*self._only, *(listed(number, entry) for number, entry in enumerate(self.outputs)))

    @property
    def _only(self) -> tuple[Write, ...]:
        """The output that has the query of the pipeline; no file has others beside it."""
        if self.query is None or self.output is None:
            return ()
        output, sink = write_of(self.output)
        return (
            Write(
                output=output,
                sink=sink,
                query=self.query,
                relation=None,
                at=("output",),
                query_at=("query",),
                description=None,
                columns=self.columns,
                columns_at=("columns",),
                checks=self.checks,
                checks_at=("checks",),
            ),
        )

    def place(self, *path: str | int) -> Location:
        """Return where a key or a list item stands; of an absent one, what encloses it.

        `place("query")` is the line of the first line of the SQL text. How a source is read stands
        where it is declared, and not among the topics.
        """
        if path[:1] == ("topics",) and path[1:2] and path[1] in self.sources:
            path = ("sources", *path[1:])
        for end in range(len(path), 0, -1):
            if found := self.places.get(path[:end]):
                return found
        return self.at

    def is_event(self, name: str) -> bool:
        """Tell whether the records of a topic are events where it is joined."""
        return name not in self.state.dimensions and not self.topic(name).table

    def topic(self, name: str) -> TopicSpec:
        """Return how a topic or source is read, the defaults if the file does not mention it."""
        source = self.sources.get(name)
        return self.topics.get(name, TopicSpec()) if source is None else source.as_topic

    def target_of(self, name: str) -> str:
        """Return what a topic that is read would be called if it were written."""
        said = self.topic(name)
        return topic_target(said.topic or name, said.cluster or "")

    @property
    def said_of_topics(self) -> Mapping[str, TopicSpec]:
        """How topics are read of which the file says so, and all sources."""
        return {**self.topics, **{name: each.as_topic for name, each in self.sources.items()}}

    @property
    def queried(self) -> Mapping[str, RelationSpec]:
        """The relations that are queries, or say how others are read, by name."""
        return {n: each for n, each in self.relations.items() if isinstance(each, RelationSpec)}

    @property
    def readings(self) -> Mapping[str, RelationSpec]:
        """The relations that are readings of topics, by name."""
        return {name: each for name, each in self.queried.items() if each.topic is not None}

    @property
    def transforms(self) -> Mapping[str, AnyTransform]:
        """The relations that are transforms, by name."""
        return {n: each for n, each in self.relations.items() if isinstance(each, TransformSpec)}

    @property
    def dynamic_tables(self) -> Mapping[str, DynamicTableSpec]:
        """The relations that are dynamic tables, by name."""
        return {n: each for n, each in self.relations.items() if isinstance(each, DynamicTableSpec)}

    def read_as(self, topic: str, reading: str | None) -> TopicSpec:
        """Return how a topic is read under the name of a reading; None: under its own."""
        said = self.topic(topic)
        if reading is None:
            return said
        own = self.readings[reading]
        event_time = said.event_time if own.event_time is None else own.event_time
        as_said = {name: getattr(own, name) for name in OF_READINGS}
        return said.model_copy(update={**as_said, "event_time": event_time})

    def event_time_at(self, topic: str, column: str) -> Path:
        """Return where a column is said to be the event time of a topic: for the topic, or for a
        reading of it."""
        own: Path = ("topics", topic, "event_time")
        if self.topic(topic).event_time == column:
            return own
        readings = self.readings.items()
        said = (n for n, each in readings if each.topic == topic and each.event_time == column)
        return next((("relations", name, "event_time") for name in said), own)
