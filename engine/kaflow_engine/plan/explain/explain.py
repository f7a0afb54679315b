"""Explains a pipeline file, as far as the columns of its topics are known."""

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from kaflow_engine.connectors.sinks import sink_kind
from kaflow_engine.errors import ModelError
from kaflow_engine.flow.flow import Flow
from kaflow_engine.flow.graph import joins, ledger_of, only_sink, output_columns, output_schema
from kaflow_engine.model.columns import Column
from kaflow_engine.model.config import Config, topic_format
from kaflow_engine.model.specs import PipelineSpec
from kaflow_engine.plan.explain.explanation import (
    Explanation,
    LineagePart,
    SidePart,
    StepPart,
    TablePart,
    TopicPart,
)
from kaflow_engine.plan.planner.pipeline_plan import build_plan, check_pipeline, declared_columns
from kaflow_engine.plan.planner.topics import TopicRole, topic_roles
from kaflow_engine.sql.pipeline import pipeline_shape, pipeline_topics
from kaflow_engine.sql.scope import NeedsSchema
from kaflow_engine.sql.shape import MATCHED, Expr, JoinShape, QueryShape

Columns = Mapping[str, tuple[Column, ...]]
Resolver = Callable[[PipelineSpec, Config, Sequence[str]], Columns]
"""Finds the columns of topics that declare none: from the registry, or from a sample."""


def explain(spec: PipelineSpec, config: Config, columns: Columns | None = None) -> Explanation:
    """Explain a pipeline as far as its columns are known.

    Args:
        spec: What the author wrote.
        config: For defaults.
        columns: Columns of topics that declare none, where someone found them.

    Raises:
        ModelError: The file is wrong.
    """
    names = pipeline_topics(spec)
    declared = {name: declared_columns(spec, name) for name in names}
    found = {**declared, **{n: (columns or {}).get(n) for n in names if declared[n] is None}}
    schemas = {name: some for name, some in found.items() if some is not None}
    if len(schemas) == len(names):
        planned = build_plan(spec, config, schemas)
        return _explanation(spec, config, planned.shape, planned.roles, schemas, (), planned.plan)
    notices = check_pipeline(spec, config)
    try:
        shape = pipeline_shape(spec, schemas.get)
    except NeedsSchema:
        shape = None
    roles = topic_roles(spec, config, [s.topic for s in shape.sources] if shape else names)
    return _explanation(spec, config, shape, roles, schemas, notices, None)


def unknown_topics(spec: PipelineSpec) -> tuple[str, ...]:
    """Return the topics of a pipeline that declare no columns."""
    names = pipeline_topics(spec)
    return tuple(name for name in names if spec.topic(name).columns is None)


def _explanation(
    spec: PipelineSpec,
    config: Config,
    shape: QueryShape | None,
    roles: Sequence[TopicRole],
    schemas: Columns,
    notices: Sequence[ModelError],
    plan: Flow | None,
) -> Explanation:
    driving = {shape.driving.alias} if shape else set[str]()
    where = shape.where if shape else ()
    wait = next((role.ttl for role in roles if role.driving), 0)
    key = _key_name(spec, shape)
    return Explanation(
        name=spec.name,
        id=spec.id,
        at=str(spec.at),
        description=spec.description,
        topics=tuple(_topic(spec, config, role, shape, schemas) for role in roles),
        driving=shape.driving.alias if shape else None,
        filters=tuple(
            _text(part)
            for part in ((*shape.driving.filter, *where) if shape else ())
            if part.aliases <= driving
        ),
        steps=_steps(shape, roles, plan),
        where=tuple(_text(part) for part in where if not part.aliases <= driving),
        emission=spec.emission.type,
        require=_required(spec, key),
        on_expiry=spec.emission.on_expiry,
        on_dimension_update=spec.on_dimension_update,
        wait=wait,
        output_topic=spec.output.topic,
        output_table=_table(spec, config),
        output_format="delta" if spec.output.table else spec.output.format,
        output_key=key,
        output=output_columns(plan) if plan else None,
        lineage=_lineage(shape) if shape else (),
        avro_schema=output_schema(plan) if plan else None,
        delivery=spec.delivery,
        guarantee=_guarantee(spec),
        ordered=spec.ordered,
        ledger=ledger_of(plan) is not None if plan else None,
        last_exchange=only_sink(plan).exchange if plan else None,
        dead_letters=spec.dead_letters.topic or "",
        max_rate=spec.dead_letters.max_rate,
        max_count=spec.dead_letters.max_count,
        partitions=spec.partitions,
        notices=tuple(str(notice) for notice in notices),
    )


def _guarantee(spec: PipelineSpec) -> str:
    promised = sink_kind("delta" if spec.output.table else "kafka").capabilities(spec.delivery)
    return f"{promised.guarantee.replace('_', ' ')}: {promised.reason}"


def _table(spec: PipelineSpec, config: Config) -> TablePart | None:
    if spec.output.table is None:
        return None
    return TablePart(
        name=spec.output.table,
        path=str(Path(config.warehouse).absolute() / spec.output.table),
        partition=spec.output.partition,
        interval=spec.output.interval,
        start=spec.backfill.start,
        schedule=spec.backfill.schedule,
    )


def _key_name(spec: PipelineSpec, shape: QueryShape | None) -> str | None:
    named = shape.key if shape else None
    return named.name if named else spec.output.key


def _required(spec: PipelineSpec, key: str | None) -> tuple[str, ...]:
    if spec.emission.type != "smart":
        return ()
    return tuple(dict.fromkeys([*spec.emission.require, *([] if key is None else [key])]))


def _topic(
    spec: PipelineSpec,
    config: Config,
    role: TopicRole,
    shape: QueryShape | None,
    schemas: Columns,
) -> TopicPart:
    topic = spec.topic(role.name)
    event = role.driving or role.side
    names = (("driving", role.driving), ("event side", role.side), ("dimension", role.dimension))
    return TopicPart(
        name=role.name,
        roles=tuple(name for name, has in names if has),
        format=topic_format(spec, config, role.name),
        event_time=topic.event_time,
        ttl=role.ttl if event else None,
        ttl_from=role.ttl_from if event else None,
        lateness=topic.lateness,
        idle_timeout=topic.idle_timeout,
        max_future=topic.max_future,
        on_error=topic.on_error,
        on_data_loss=topic.on_data_loss,
        on_schema_change=topic.on_schema_change,
        lookup=topic.lookup if role.dimension else None,
        keep=topic.history.keep,
        history=topic.history.path,
        tombstones=_tombstones(spec, role, shape),
        columns=schemas.get(role.name),
    )


def _tombstones(spec: PipelineSpec, role: TopicRole, shape: QueryShape | None) -> str | None:
    """Say what a null value of a topic does; None where the query is not known yet."""
    if not role.dimension:
        if spec.topic(role.name).on_null == "row":
            return "a record without a value is a row of NULLs"
        return "a record without a value is skipped and counted"
    if shape is None:
        return None
    key = spec.topic(role.name).key
    joins = [join for join in shape.joins if shape.source(join.alias).topic == role.name]
    if any(len(join.keys) > 1 for join in joins):
        return "a record without a value is counted and ignored: the join key has several columns"
    own = {name.lower() for join in joins for _, name in join.keys[0].inner.uses}
    if key is not None and own != {key.lower()}:
        return f"a record without a value is counted and ignored: the Kafka key is '{key}'"
    return "a record without a value deletes the entry whose join key equals its Kafka key"


def _steps(
    shape: QueryShape | None, roles: Sequence[TopicRole], plan: Flow | None
) -> tuple[StepPart, ...]:
    groups: dict[tuple[str, ...], list[JoinShape]] = {}
    if shape is None:
        return ()
    if plan is not None:
        by_alias = {join.alias: join for join in shape.joins}
        for number, operator in enumerate(joins(plan)):
            together = [by_alias[side.alias] for side in operator.sides]
            groups[(str(number), *_key(together[0]))] = together
    else:
        for join in shape.joins:
            groups.setdefault(("", *_key(join)), []).append(join)
    needs = [operator.require for operator in joins(plan)] if plan else [None] * len(groups)
    dimensions = {role.name for role in roles if role.dimension}
    return tuple(
        StepPart(
            key=_key(together[0]),
            sides=tuple(_side(shape, join, dimensions) for join in together),
            inner=tuple(join.alias for join in together if join.kind == "INNER"),
            require=tuple(_conditions(need)),
        )
        for together, need in zip(groups.values(), needs, strict=True)
    )


def _key(join: JoinShape) -> tuple[str, ...]:
    return tuple(sorted(_text(pair.outer) for pair in join.keys))


def _conditions(need: str | None) -> list[str]:
    parts = need.split(" AND ") if need else []
    texts = [part.removesuffix(" IS NOT NULL").replace('"', "") for part in parts]
    return [text[1:-1] if text.startswith("(") and text.endswith(")") else text for text in texts]


def _side(shape: QueryShape, join: JoinShape, dimensions: set[str]) -> SidePart:
    source = shape.source(join.alias)
    return SidePart(
        alias=join.alias,
        topic=source.topic,
        kind=join.kind,
        role="dimension" if source.topic in dimensions else "event",
        on=tuple(f"{_text(pair.outer)} = {_text(pair.inner)}" for pair in join.keys),
        filter=tuple(_text(part) for part in source.filter),
    )


def _lineage(shape: QueryShape) -> tuple[LineagePart, ...]:
    topics = {source.alias: source.topic for source in shape.sources}
    return tuple(
        LineagePart(
            column=output.name,
            sources=tuple(
                sorted(
                    {(topics[alias], name) for alias, name in output.expr.uses if name != MATCHED}
                )
            ),
        )
        for output in shape.outputs
    )


def _text(expr: Expr) -> str:
    return expr.sql.replace('"', "")
