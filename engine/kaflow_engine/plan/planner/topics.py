"""How the topics that a query reads are read: their columns and times."""

from collections.abc import Collection, Mapping, Sequence

from kaflow_engine.duck.quoting import identifier, literal
from kaflow_engine.errors import Location, ModelError, UnknownName
from kaflow_engine.flow.origins.hybrid import HybridParams
from kaflow_engine.flow.sources import OtherClock, SourceParams, TopicParams
from kaflow_engine.formats.contract import format_of
from kaflow_engine.formats.types import fields_of
from kaflow_engine.model.columns import Column
from kaflow_engine.model.config import Config, topic_format
from kaflow_engine.model.formats import WITH_SCHEMA, one_of
from kaflow_engine.model.key_formats import TEXT
from kaflow_engine.model.record_columns import KEY, KEY_BYTES, NULL_VALUE, record_columns
from kaflow_engine.model.specs import PipelineSpec
from kaflow_engine.plan.planner.inputs.history import history_params
from kaflow_engine.plan.planner.inputs.kafka_topics import dead_letter_target
from kaflow_engine.plan.planner.inputs.sources import source_params
from kaflow_engine.plan.planner.roles import ClockRole, TopicRole
from kaflow_engine.sql.pipeline import key_type

_INTEGERS = {"TINYINT", "SMALLINT", "INTEGER", "BIGINT", "UTINYINT", "USMALLINT", "UINTEGER"}
_TIMES = {"TIMESTAMP", "TIMESTAMP WITH TIME ZONE", "TIMESTAMP_MS", "TIMESTAMP_S", "TIMESTAMP_NS"}


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
    for name in spec.said_of_topics:
        if name not in topics and not (name in spec.sources and name in spec.relations):
            what = "source" if name in spec.sources else "topic"
            wrong.append(UnknownName(what, name, topics, spec.place("topics", name)))
    return wrong


def _written_and_read(spec: PipelineSpec, topics: Sequence[str]) -> list[ModelError]:
    read = {spec.target_of(name) for name in topics if name not in spec.sources}
    wrong = [
        ModelError(
            f"the pipeline reads topic '{write.target}', which it writes: its rows go "
            "round without end",
            spec.place(*write.at, "topic"),
            "write to another topic",
        )
        for write in spec.writes
        if write.output.topic is not None and write.target in read
    ]
    letters = dead_letter_target(spec)
    if letters in read:
        wrong.append(
            ModelError(
                f"the pipeline reads topic '{letters}', where its dead letters go: "
                "they go round without end",
                spec.place("dead_letters", "topic"),
                "give the dead letters another topic with dead_letters.topic",
            )
        )
    return wrong


def event_time_sql(
    spec: PipelineSpec, topic: str, name: str | None, columns: Sequence[Column]
) -> tuple[str | None, Column | None]:
    """Return SQL for an event time in epoch milliseconds, and the column it reads.

    Args:
        spec: What the author wrote.
        topic: Whose records have it.
        name: The column, `_key` or `_key.<field>`; None: the Kafka timestamp.
        columns: Those of the topic.

    Raises:
        ModelError: the column does not exist or is no time.
    """
    if name is None:
        return None, None
    place = spec.place(*spec.event_time_at(topic, name))
    found = next((c for c in columns if c.name.lower() == name.lower()), None)
    if found is None and _is_of_key(name) and source_params(spec, topic) is None:
        return _time_of_key(name, key_type(spec.topic(topic)), place), None
    if found is None:
        raise UnknownName("column", name, [c.name for c in columns], place)
    sql = _milliseconds(identifier(f"c.{found.name}"), found.type)
    if sql is None:
        raise ModelError(
            f"event_time: column '{name}' of '{topic}' is of type {found.type}",
            place,
            "declare it as TIMESTAMP, or as BIGINT for epoch milliseconds",
        )
    return sql, found


def _milliseconds(sql: str, kind: str) -> str | None:
    """Return SQL for a time in epoch milliseconds; None where its type is none of times."""
    if kind in _TIMES:
        return f"epoch_ms({sql})"
    return f"CAST({sql} AS BIGINT)" if kind in _INTEGERS else None


def _is_of_key(name: str) -> bool:
    return name.partition(".")[0].lower() == KEY


def _time_of_key(name: str, kind: str, place: Location) -> str:
    """Return SQL for an event time that a key holds: of a text a number in its JSON object.

    Raises:
        ModelError: The key has no such field, or that is no time.
    """
    sql = identifier(f"c.{KEY}")
    _, *path = name.split(".")
    if path and kind == TEXT:
        inside = literal("$" + "".join(f'."{part}"' for part in path))
        return f"CAST(json_extract_string({sql}, {inside}) AS BIGINT)"
    for part in path:
        fields = {field.name.lower(): field for field in fields_of(kind)}
        found = fields.get(part.lower())
        if found is None:
            raise UnknownName("field of keys", part, [each.name for each in fields.values()], place)
        sql, kind = f"({sql}).{identifier(found.name)}", found.type
    time = _milliseconds(sql, kind)
    if time is None:
        raise ModelError(
            f"event_time: '{name}' is of type {kind}",
            place,
            "say what keys are with key_format and key_type: a TIMESTAMP, or a BIGINT for epoch "
            "milliseconds",
        )
    return time


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
        event_time_sql(spec, role.name, topic.event_time, columns)  # also where nothing reads by it
        names = {name.lower() for name in used[role.name]}
        clocks: list[OtherClock] = []
        for each in role.clocks:
            event_time, clock = event_time_sql(spec, role.name, each.column, columns)
            if clock is not None:
                names.add(clock.name.lower())
            clocks.append(_clock(each, event_time, role.name in spec.state.dimensions))
        form = topic_format(spec, config, role.name)
        every = format_of(form).traits.positional
        found.append(
            TopicParams(
                name=role.name,
                index=index,
                format=form,
                columns=tuple(c for c in columns if every or c.name.lower() in names),
                record_columns=tuple(
                    c
                    for c in (*record_columns(columns, kind), NULL_VALUE, KEY_BYTES)
                    if c.name in names
                ),
                key_format=topic.key_format,
                key_type=kind,
                event_time=clocks[0].event_time,
                dimension=clocks[0].dimension,
                rank=clocks[0].rank,
                driving=clocks[0].driving,
                on_error=topic.on_error,
                on_data_loss=topic.on_data_loss,
                max_future=topic.max_future,
                lateness=topic.lateness,
                idle_timeout=topic.idle_timeout,
                history=history_params(spec, config, role.name),
                on_null="row" if NULL_VALUE.name in names else topic.on_null,
                clocks=tuple(clocks[1:]),
                connector=_connector(spec, role.name, columns),
                cluster=topic.cluster or "",
                topic=topic.topic if topic.topic not in (None, role.name) else "",
            )
        )
    return tuple(found)


def _connector(spec: PipelineSpec, name: str, columns: Sequence[Column]) -> SourceParams | None:
    """Return where the records of a source come from; one in phases must know its columns."""
    params = source_params(spec, name)
    if isinstance(params, HybridParams) and spec.sources[name].columns is None:
        return params.with_columns(tuple(columns))
    return params


def _clock(role: ClockRole, event_time: str | None, listed: bool) -> OtherClock:
    return OtherClock(
        name=role.name,
        event_time=event_time,
        dimension=listed or (role.table and not role.events and not role.timed),
        rank=role.rank,
        driving=role.driving or role.rows_of_tables,
    )
