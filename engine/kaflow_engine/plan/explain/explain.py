"""Explains a pipeline file, as far as the columns of its topics are known."""

from collections.abc import Callable, Sequence

from kaflow_engine.duck.functions import catalogue
from kaflow_engine.errors import ModelError
from kaflow_engine.flow.chains.chain import chains, driving_of
from kaflow_engine.flow.flow import Flow
from kaflow_engine.flow.graph import (
    columns_of,
    gathered_before,
    gathered_to,
    projects_of,
)
from kaflow_engine.flow.operators import Gathers
from kaflow_engine.flow.sinks import OPERATION, Sink, TopicSink, letters_called
from kaflow_engine.model.config import Config
from kaflow_engine.model.outputs.output_specs import Write
from kaflow_engine.model.record_columns import KEY, KEY_BYTES, NULL_VALUE, TRACE_HEADERS
from kaflow_engine.model.specs import PipelineSpec
from kaflow_engine.plan.explain.explanation import (
    BranchPart,
    Explanation,
    FunctionPart,
    LineagePart,
    OutputPart,
)
from kaflow_engine.plan.explain.groups import group_parts
from kaflow_engine.plan.explain.sinks import guarantee, sink_part, table_part
from kaflow_engine.plan.explain.steps import (
    chain_part,
    condition_text,
    shared_filters,
    text_of,
    unknown_chain,
)
from kaflow_engine.plan.explain.topics import Columns, attached_part, topic_part
from kaflow_engine.plan.planner.events.matching import kept_roles
from kaflow_engine.plan.planner.grouping.settings import keyed_shapes, pace
from kaflow_engine.plan.planner.inputs.kafka_topics import dead_letter_target, letters_apart
from kaflow_engine.plan.planner.outputs.side_outputs import side_outputs
from kaflow_engine.plan.planner.pipeline_plan import build_plan, check_pipeline, declared_columns
from kaflow_engine.plan.planner.roles import TopicRole, timed_topics, topic_roles, topics_of_rows
from kaflow_engine.sql.chain_shapes import Below, BranchShape, ChainShape, chain_shapes
from kaflow_engine.sql.named.attached import attached_names
from kaflow_engine.sql.pipeline import pipeline_topics, topics_of
from kaflow_engine.sql.scope import NeedsSchema
from kaflow_engine.sql.shape import MATCHED, Expr, QueryShape, SourceShape
from kaflow_engine.sql.types.bind import expressions
from kaflow_engine.sql.types.origins import columns_behind, topics_by_alias

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
    read = topics_of(spec)
    every = [
        SourceShape(alias=n, topic=n, table=read(n).key is not None)
        for n in names
        if read(n).attached is None
    ]
    reads = [sources for each in queries if (sources := each.shape.read)] or [every]
    roles = topic_roles(spec, config, reads, timed_topics(queries), topics_of_rows(queries))
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
    below = Below.of(branch.shape for each in queries for branch in each.branches)
    shown = [
        chain_part(spec, each, roles, plan, planned.get(each.number), below) for each in queries
    ]
    wait = next((role.ttl for role in roles if role.driving or role.rows_of_tables), 0)
    return Explanation(
        name=spec.name,
        id=spec.id,
        at=str(spec.at),
        description=spec.description,
        topics=tuple(
            topic_part(spec, config, role, queries, schemas)
            for role in kept_roles(spec, queries, roles)
        )
        + tuple(attached_part(spec, name, schemas) for name in attached_names(spec)),
        chains=tuple(shown) or (unknown_chain(spec, wait),),
        emission=shown[0].emission if shown else spec.emission.type,
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
        dead_letters=dead_letter_target(spec),
        letters_apart=letters_called(letters_apart(spec)),
        max_rate=spec.dead_letters.max_rate,
        max_count=spec.dead_letters.max_count,
        partitions=spec.partitions,
        notices=tuple(str(notice) for notice in notices),
        functions=_functions(queries),
    )


def _functions(queries: Sequence[ChainShape]) -> tuple[FunctionPart, ...]:
    shapes = [branch.shape for each in queries for branch in each.branches]
    shapes = [one for shape in shapes for one in (*shape.below, shape)]
    calls = [call.sql for shape in shapes for group in shape.groups for call in group.calls]
    texts = " ".join([*(expr.sql for shape in shapes for expr in expressions(shape)), *calls])
    known = catalogue.known().functions
    keys = [key for key in catalogue.called_in(texts) if key in known]
    found = sorted((known[key] for key in keys), key=lambda each: each.name)
    return tuple(
        FunctionPart(
            name=each.name, signature=each.signature, version=each.version, module=each.module
        )
        for each in found
    )


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
    output, sink = write.output, planned[1] if planned else None
    in_order = sorted((e for e in branches if e[1].branch >= 0), key=lambda e: e[1].branch)
    kinds = Below.of(each.shape for _, each, _ in branches)
    parts: dict[str, list[BranchPart]] = {"lookup": [], "rows": [], "union": []}
    for each in (e for e in branches if e[1].branch < 0):
        kind = kinds.called(each[1].shape)
        parts[kind].append(_branch(spec, write, None if kind == "union" else planned, each))
    return OutputPart(
        topic=output.topic,
        cluster=output.cluster,
        table=table_part(spec, config, output),
        sink=sink_part(write.sink, sink) if write.sink else None,
        format=write.sink.kind if write.sink else "delta" if output.table else output.format,
        key=_key_name(write, in_order[0][1].shape if in_order else None),
        key_format=_key_format(write, sink),
        branches=tuple(_branch(spec, write, planned, each) for each in in_order)
        or (BranchPart(chain=0, unnests=(), where=(), lineage=()),),
        looked_up=tuple(parts["lookup"]),
        looking_up=tuple(parts["rows"]),
        gathered=tuple(parts["union"]),
        columns=columns_of(*planned) if planned else None,
        avro_schema=sink.avro_schema if isinstance(sink, TopicSink) else None,
        guarantee=guarantee(spec, write),
        last_exchange=sink.exchange if sink else None,
        every=pace(spec, write),
        headers=_headers(write, in_order[0][1].shape if in_order else None),
        side_outputs=tuple(str(e) for e in side_outputs(spec) if e.target == write.target),
    )


def _headers(write: Write, shape: QueryShape | None) -> str | None:
    headers = shape.headers if shape else None
    if headers is not None and write.output.trace_context:
        return f"{' and '.join(TRACE_HEADERS)} of the driving record"
    return None if headers is None else text_of(headers.expr)


def _key_format(write: Write, sink: Sink | None) -> str | None:
    form = sink.key_format if isinstance(sink, TopicSink) else write.output.key_format
    return None if form == "text" else form


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
        where=tuple(condition_text(part, shape) for part in shape.where if part.sql not in known),
        lineage=_lineage(shape),
        groups=group_parts(
            spec,
            write,
            shape,
            _aggregates(*planned, each, place) if planned else None,
            is_looked_up=each.branch < 0,
        ),
    )


def _aggregates(plan: Flow, sink: Sink, branch: BranchShape, chain: int) -> Sequence[Gathers]:
    """Return the operators of each GROUP BY of a query."""
    if branch.branch >= 0:
        return gathered_before(plan, projects_of(plan, sink)[branch.branch])
    if not branch.shape.groups:
        return ()
    alias = branch.shape.groups[-1].alias
    mine = [each for each in plan.operators if isinstance(each, Gathers) and each.alias == alias]
    own = (each for each in mine if driving_of(plan, each).chain == chain)
    return gathered_to(plan, next(own, mine[0]))  # those of a union have a chain of their own


def _key_name(write: Write, shape: QueryShape | None) -> str | None:
    named = shape.key if shape else None
    if named is not None and named.role == "own_key":
        return KEY
    names = write.output.key_columns
    return ", ".join(names) if names else named.name if named else None


def _lineage(shape: QueryShape) -> tuple[LineagePart, ...]:
    found: list[LineagePart] = []
    beside = (MATCHED, NULL_VALUE.name)
    for output in (e for e in shape.outputs if e.name not in (OPERATION, KEY_BYTES.name)):
        read = {each for each in _origins(shape, output.expr) if each[1] not in beside}
        found.append(LineagePart(column=output.name, sources=tuple(sorted(read))))
    return tuple(found)


def _origins(shape: QueryShape, expr: Expr) -> frozenset[tuple[str, str]]:
    """Return the (topic, column) pairs that an expression is made of, in all branches of a union
    whose rows are grouped below it."""
    topics, uses = topics_by_alias(shape), expr.uses
    found = {(topics[alias], name) for alias, name in columns_behind(shape, expr)}
    for group in reversed(shape.groups):
        own = tuple(use for use in uses if use[0] == group.alias)
        if group.transform is not None:
            table = group.transform.of_table
            found |= {table[name] for _, name in own if name in table}
        found |= {one for each in group.beside for one in _origins(each, Expr(sql="", uses=own))}
        uses = tuple(use for _, name in own for part in group.behind(name) for use in part.uses)
    return frozenset(found)


def _unnests(shape: QueryShape) -> tuple[str, ...]:
    return tuple(
        ", ".join(f"{text_of(of)} as {each.alias}.{n}" for n, of in each.lists)
        for each in shape.unnests
    )
