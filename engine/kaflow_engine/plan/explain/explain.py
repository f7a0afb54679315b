"""Explains a pipeline file, as far as the columns of its topics are known."""

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from kaflow_engine.connectors.sinks import sink_kind
from kaflow_engine.errors import ModelError
from kaflow_engine.flow.chains import Chain, chains
from kaflow_engine.flow.flow import Flow
from kaflow_engine.flow.graph import (
    aggregates_before,
    aggregates_to,
    columns_of,
    joins,
    operator_of,
    projects_of,
)
from kaflow_engine.flow.operators import Aggregate
from kaflow_engine.flow.sinks import Sink, TopicSink
from kaflow_engine.model.columns import Column
from kaflow_engine.model.config import Config, topic_format
from kaflow_engine.model.output_specs import OutputSpec, Write
from kaflow_engine.model.specs import PipelineSpec
from kaflow_engine.plan.explain.explanation import (
    BranchPart,
    Explanation,
    LineagePart,
    OutputPart,
    TablePart,
    TopicPart,
)
from kaflow_engine.plan.explain.groups import group_parts
from kaflow_engine.plan.explain.steps import chain_part, shared_filters, text_of, unknown_chain
from kaflow_engine.plan.planner.grouping.settings import keyed_shapes
from kaflow_engine.plan.planner.pipeline_plan import (
    build_plan,
    check_pipeline,
    declared_columns,
)
from kaflow_engine.plan.planner.topics import TopicRole, topic_roles
from kaflow_engine.sql.chain_shapes import BranchShape, ChainShape, chain_shapes
from kaflow_engine.sql.pipeline import pipeline_topics
from kaflow_engine.sql.scope import NeedsSchema
from kaflow_engine.sql.shape import MATCHED, Expr, QueryShape

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
        return _explanation(spec, config, planned.chains, planned.roles, schemas, (), planned.plan)
    notices = check_pipeline(spec, config)
    try:
        queries = chain_shapes(keyed_shapes(spec, schemas.get))
    except NeedsSchema:
        queries = ()
    reads = [each.shape.topics for each in queries] or [names]
    roles = topic_roles(spec, config, reads)
    return _explanation(spec, config, queries, roles, schemas, notices, None)


def unknown_topics(spec: PipelineSpec) -> tuple[str, ...]:
    """Return the topics of a pipeline that declare no columns."""
    names = pipeline_topics(spec)
    return tuple(name for name in names if spec.topic(name).columns is None)


def _explanation(
    spec: PipelineSpec,
    config: Config,
    queries: Sequence[ChainShape],
    roles: Sequence[TopicRole],
    schemas: Columns,
    notices: Sequence[ModelError],
    plan: Flow | None,
) -> Explanation:
    planned = {chain.number: chain for chain in chains(plan)} if plan else {}
    shown = [chain_part(spec, each, roles, plan, planned.get(each.number)) for each in queries]
    wait = next((role.ttl for role in roles if role.driving), 0)
    return Explanation(
        name=spec.name,
        id=spec.id,
        at=str(spec.at),
        description=spec.description,
        topics=tuple(_topic(spec, config, role, queries, schemas) for role in roles),
        chains=tuple(shown) or (unknown_chain(spec, wait),),
        emission=_emission(spec, list(planned.values())),
        on_expiry=spec.emission.on_expiry,
        on_dimension_update=spec.on_dimension_update,
        outputs=tuple(
            _output(
                spec,
                config,
                write,
                [
                    (place, branch, shared_filters(each))
                    for place, each in enumerate(queries)
                    for branch in each.branches
                    if branch.output == number
                ],
                (plan, plan.sinks[number]) if plan else None,
            )
            for number, write in enumerate(spec.writes)
        ),
        delivery=spec.delivery,
        ordered=spec.ordered,
        dead_letters=spec.dead_letters.topic or "",
        max_rate=spec.dead_letters.max_rate,
        max_count=spec.dead_letters.max_count,
        partitions=spec.partitions,
        notices=tuple(str(notice) for notice in notices),
    )


def _emission(spec: PipelineSpec, planned: Sequence[Chain]) -> str:
    """Return when rows leave joins; of groups, each says it."""
    return planned[0].driving.emission if planned else spec.emission.type


def _output(
    spec: PipelineSpec,
    config: Config,
    write: Write,
    branches: Sequence[tuple[int, BranchShape, Sequence[Expr]]],
    planned: tuple[Flow, Sink] | None,
) -> OutputPart:
    """Explain an output.

    Args:
        spec: What the author wrote.
        config: For defaults.
        write: What is written.
        branches: Its SELECTs, each with the place of its chain, and the filters of that one.
        planned: The plan, and the sink; None where columns are not known yet.
    """
    output = write.output
    sink = planned[1] if planned else None
    in_order = sorted((e for e in branches if e[1].branch >= 0), key=lambda e: e[1].branch)
    looked_up = [each for each in branches if each[1].branch < 0]
    return OutputPart(
        topic=output.topic,
        table=_table(spec, config, output),
        format="delta" if output.table else output.format,
        key=_key_name(write, in_order[0][1].shape if in_order else None),
        branches=tuple(_branch(spec, write, planned, each) for each in in_order)
        or (BranchPart(chain=0, unnests=(), where=(), lineage=()),),
        looked_up=tuple(_branch(spec, write, planned, each) for each in looked_up),
        columns=columns_of(*planned) if planned else None,
        avro_schema=sink.avro_schema if isinstance(sink, TopicSink) else None,
        guarantee=_guarantee(spec, output),
        last_exchange=sink.exchange if sink else None,
    )


def _branch(
    spec: PipelineSpec,
    write: Write,
    planned: tuple[Flow, Sink] | None,
    branch: tuple[int, BranchShape, Sequence[Expr]],
) -> BranchPart:
    place, each, shared = branch
    shape, known = each.shape, {part.sql for part in shared}
    return BranchPart(
        chain=place,
        unnests=_unnests(shape),
        where=tuple(text_of(part) for part in shape.where if part.sql not in known),
        lineage=_lineage(shape),
        groups=group_parts(
            spec,
            write,
            shape,
            _aggregates(*planned, each) if planned else None,
            is_looked_up=each.branch < 0,
        ),
    )


def _aggregates(plan: Flow, sink: Sink, branch: BranchShape) -> Sequence[Aggregate]:
    """Return the operators of each GROUP BY of a query."""
    if branch.branch >= 0:
        return aggregates_before(plan, projects_of(plan, sink)[branch.branch])
    alias = branch.shape.groups[-1].alias
    sides = (side for join in joins(plan) for side in join.sides if side.alias == alias)
    found = (operator_of(plan, side.input) for side in sides)
    return next(aggregates_to(plan, each) for each in found if isinstance(each, Aggregate))


def _guarantee(spec: PipelineSpec, output: OutputSpec) -> str:
    promised = sink_kind("delta" if output.table else "kafka").capabilities(spec.delivery)
    return f"{promised.guarantee.replace('_', ' ')}: {promised.reason}"


def _table(spec: PipelineSpec, config: Config, output: OutputSpec) -> TablePart | None:
    if output.table is None:
        return None
    return TablePart(
        name=output.table,
        path=str(Path(config.warehouse).absolute() / output.table),
        partition=output.partition,
        interval=output.interval,
        start=spec.backfill.start,
        schedule=spec.backfill.schedule,
    )


def _key_name(write: Write, shape: QueryShape | None) -> str | None:
    named = shape.key if shape else None
    return named.name if named else write.output.key


def _topic(
    spec: PipelineSpec,
    config: Config,
    role: TopicRole,
    queries: Sequence[ChainShape],
    schemas: Columns,
) -> TopicPart:
    topic = spec.topic(role.name)
    event = role.driving or role.side
    names = (("driving", role.driving), ("event side", role.side), ("dimension", role.dimension))
    if topic.table:
        names, event = (("table", True),), False
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
        lookup=topic.lookup if role.dimension and not topic.table else None,
        keep=topic.history.keep,
        history=topic.history.path,
        tombstones=_tombstones(spec, role, [each.shape for each in queries]),
        columns=schemas.get(role.name),
    )


def _tombstones(spec: PipelineSpec, role: TopicRole, shapes: Sequence[QueryShape]) -> str | None:
    """Say what a null value of a topic does; None where the query is not known yet."""
    if spec.topic(role.name).table:
        return "a record without a value deletes the row of its key"
    if not role.dimension:
        if spec.topic(role.name).on_null == "row":
            return "a record without a value is a row of NULLs"
        return "a record without a value is skipped and counted"
    if not shapes:
        return None
    key = spec.topic(role.name).key
    joins = [
        join
        for shape in shapes
        for join in shape.joins
        if shape.source(join.alias).topic == role.name
    ]
    if any(len(join.keys) > 1 for join in joins):
        return "a record without a value is counted and ignored: the join key has several columns"
    own = {name.lower() for join in joins for _, name in join.keys[0].inner.uses}
    if key is not None and own != {key.lower()}:
        return f"a record without a value is counted and ignored: the Kafka key is '{key}'"
    return "a record without a value deletes the entry whose join key equals its Kafka key"


def _lineage(shape: QueryShape) -> tuple[LineagePart, ...]:
    topics = shape.topics_by_alias
    found: list[LineagePart] = []
    for output in shape.outputs:
        read = {(topics[a], name) for a, name in shape.reads(output.expr) if name != MATCHED}
        found.append(LineagePart(column=output.name, sources=tuple(sorted(read))))
    return tuple(found)


def _unnests(shape: QueryShape) -> tuple[str, ...]:
    return tuple(
        ", ".join(f"{text_of(of)} as {each.alias}.{n}" for n, of in each.lists)
        for each in shape.unnests
    )
