"""Roles, TTLs and times of the topics that a query reads."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass

from kaflow_engine.duck.quoting import identifier
from kaflow_engine.errors import ModelError, UnknownName
from kaflow_engine.flow.sources import TopicParams
from kaflow_engine.formats.contract import format_of
from kaflow_engine.model.columns import Column
from kaflow_engine.model.config import Config, topic_format
from kaflow_engine.model.formats import WITH_SCHEMA, one_of
from kaflow_engine.model.record_columns import NULL_VALUE, record_columns
from kaflow_engine.model.specs import PipelineSpec
from kaflow_engine.plan.planner.history import history_params
from kaflow_engine.sql.chain_shapes import ChainShape, is_timed
from kaflow_engine.sql.pipeline import key_type
from kaflow_engine.sql.shape import SourceShape

_INTEGERS = {"TINYINT", "SMALLINT", "INTEGER", "BIGINT", "UTINYINT", "USMALLINT", "UINTEGER"}
_TIMES = {"TIMESTAMP", "TIMESTAMP WITH TIME ZONE", "TIMESTAMP_MS", "TIMESTAMP_S", "TIMESTAMP_NS"}


@dataclass(frozen=True, slots=True, kw_only=True)
class TopicRole:
    """What a topic is to a pipeline."""

    name: str
    dimension: bool
    """Looked up as one of `state.dimensions`."""
    table: bool
    """Read as a table; it may have other roles besides."""
    side: bool
    """Joined as an event side."""
    driving: bool
    """Its records make rows."""
    rows_of_tables: bool
    """Its records make rows of a table that a query is about."""
    timed: bool
    """It is a table whose changes have an event time that matters."""
    ttl: int
    """Milliseconds that its events are kept; not used for a dimension's values."""
    ttl_from: str
    """The setting that the TTL comes from."""

    @property
    def events(self) -> bool:
        """Whether its records are events: they drive, or are joined as such."""
        return self.side or (self.driving and not self.dimension)


def topic_ttl(spec: PipelineSpec, config: Config, topic: str) -> tuple[int, str]:
    """Return the TTL of an event topic in milliseconds, and the setting it comes from."""
    events = spec.state.events
    if topic in events.overrides:
        return events.overrides[topic], f"state.events.overrides.{topic}"
    if events.default_ttl is not None:
        return events.default_ttl, "state.events.default_ttl"
    if spec.window is not None:
        return spec.window, "window"
    return config.state.ttl, "state.ttl of the configuration"


def topic_roles(
    spec: PipelineSpec,
    config: Config,
    chains: Sequence[Sequence[SourceShape]],
    timed: Collection[str],
) -> tuple[TopicRole, ...]:
    """Return the roles of the topics of a pipeline, ordered by code point.

    Args:
        spec: What the author wrote.
        config: For the default TTL.
        chains: Of each the topics as its query reads them; the first drives.
        timed: Tables whose changes are grouped as rows of their own.
    """
    roles: list[TopicRole] = []
    listed = spec.state.dimensions
    every = [source for sources in chains for source in sources]
    tables = {source.topic for source in every if source.table}
    joined = [s for sources in chains if not sources[0].table for s in sources[1:]]
    driving = {sources[0].topic for sources in chains if not sources[0].table}
    rows = {s.topic for sources in chains if sources[0].table for s in sources}
    sides = {s.topic for s in joined if not s.table}
    for name in sorted({source.topic for source in every}):
        dimension = name in listed
        ttl, ttl_from = topic_ttl(spec, config, name)
        if dimension and name in driving:
            ttl, ttl_from = _driving_dimension(spec, config)
        roles.append(
            TopicRole(
                name=name,
                dimension=dimension and name in sides,
                table=name in tables,
                side=not dimension and name in sides,
                driving=name in driving,
                rows_of_tables=name in rows,
                timed=name in timed,
                ttl=ttl,
                ttl_from=ttl_from,
            )
        )
    return tuple(roles)


def timed_topics(chains: Sequence[ChainShape]) -> frozenset[str]:
    """Return the topics of tables whose changes are grouped as rows of their own."""
    timed = (chain.shape for chain in chains if is_timed(chain.shape))
    return frozenset(topic for shape in timed for topic in shape.topics_by_alias.values())


def _driving_dimension(spec: PipelineSpec, config: Config) -> tuple[int, str]:
    """A dimension that drives is an event with the default TTL."""
    return topic_ttl(spec, config, "")


def check_topic_names(spec: PipelineSpec, topics: Sequence[str]) -> list[ModelError]:
    """Return an error for each topic that the file names and the query does not read, and for each
    that it reads and the pipeline writes.
    """
    wrong = _written_and_read(spec, topics)
    for name in spec.state.events.overrides:
        if name not in topics:
            place = spec.place("state", "events", "overrides", name)
            wrong.append(UnknownName("topic", name, topics, place))
    for i, name in enumerate(spec.state.dimensions):
        if name not in topics:
            wrong.append(UnknownName("topic", name, topics, spec.place("state", "dimensions", i)))
    for name in spec.topics:
        if name not in topics:
            wrong.append(UnknownName("topic", name, topics, spec.place("topics", name)))
    return wrong


def _written_and_read(spec: PipelineSpec, topics: Sequence[str]) -> list[ModelError]:
    wrong = [
        ModelError(
            f"the pipeline reads topic '{write.output.topic}', which it writes: its rows go "
            "round without end",
            spec.place(*write.at, "topic"),
            "write to another topic",
        )
        for write in spec.writes
        if write.output.topic in topics
    ]
    if spec.dead_letter_topic in topics:
        wrong.append(
            ModelError(
                f"the pipeline reads topic '{spec.dead_letter_topic}', where its dead letters go: "
                "they go round without end",
                spec.place("dead_letters", "topic"),
                "give the dead letters another topic with dead_letters.topic",
            )
        )
    return wrong


def event_time_sql(
    spec: PipelineSpec, topic: str, columns: Sequence[Column]
) -> tuple[str | None, Column | None]:
    """Return SQL for the event time in epoch milliseconds, and the column it reads.

    Raises:
        ModelError: the column does not exist or is no time.
    """
    name = spec.event_time(topic)
    if name is None:
        return None, None
    place = spec.place(*spec.clock_at(topic))
    found = next((c for c in columns if c.name.lower() == name.lower()), None)
    if found is None:
        raise UnknownName("column", name, [c.name for c in columns], place)
    column = identifier(f"c.{found.name}")
    if found.type in _TIMES:
        return f"epoch_ms({column})", found
    if found.type in _INTEGERS:
        return f"CAST({column} AS BIGINT)", found
    raise ModelError(
        f"event_time: column '{name}' of '{topic}' is of type {found.type}",
        place,
        "declare it as TIMESTAMP, or as BIGINT for epoch milliseconds",
    )


def _check_schema_change(spec: PipelineSpec, config: Config, topic: str) -> None:
    """Only values of a registered schema say which one they have."""
    policy = spec.topic(topic).on_schema_change
    traits = format_of(topic_format(spec, config, topic)).traits
    if policy != "ignore" and not traits.registered:
        raise ModelError(
            f"'on_schema_change: {policy}' of '{topic}' has no effect on {traits.title}",
            spec.place("topics", topic, "on_schema_change"),
            f"set format: {one_of(WITH_SCHEMA)}, or remove on_schema_change",
        )


def topic_params(
    spec: PipelineSpec,
    config: Config,
    roles: Sequence[TopicRole],
    used: Mapping[str, Collection[str]],
    schemas: Mapping[str, Sequence[Column]],
) -> tuple[TopicParams, ...]:
    """Build how each topic is read: of values with names, only the columns that are used.

    Args:
        spec: What the author wrote.
        config: For defaults.
        roles: The topics, in the order of their indices.
        used: Of each topic the columns that some query reads.
        schemas: Of each topic the columns that it has.
    """
    found: list[TopicParams] = []
    for index, role in enumerate(roles):
        topic = spec.topic(role.name)
        columns, kind = schemas[role.name], key_type(topic)
        _check_schema_change(spec, config, role.name)
        event_time, clock = event_time_sql(spec, role.name, columns)
        names = {name.lower() for name in used[role.name]}
        if clock is not None:
            names.add(clock.name.lower())
        form = topic_format(spec, config, role.name)
        every = format_of(form).traits.positional
        found.append(
            TopicParams(
                name=role.name,
                index=index,
                format=form,
                columns=tuple(c for c in columns if every or c.name.lower() in names),
                record_columns=tuple(
                    c for c in (*record_columns(columns, kind), NULL_VALUE) if c.name in names
                ),
                key_format=topic.key_format,
                key_type=kind,
                event_time=event_time,
                dimension=role.name in spec.state.dimensions
                or (role.table and not role.events and not role.timed),
                rank=0 if role.dimension or role.table else 1 if role.side else 2,
                driving=role.driving or role.rows_of_tables,
                on_error=topic.on_error,
                on_data_loss=topic.on_data_loss,
                max_future=topic.max_future,
                lateness=topic.lateness,
                idle_timeout=topic.idle_timeout,
                history=history_params(spec, config, role.name),
                on_null="row" if NULL_VALUE.name in names else topic.on_null,
            )
        )
    return tuple(found)
