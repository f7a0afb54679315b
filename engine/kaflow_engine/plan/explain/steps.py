"""The chains of a pipeline, and their joins, as `kaflow explain` shows them."""

from collections.abc import Mapping, Sequence

from kaflow_engine.duck.functions.catalogue import plain
from kaflow_engine.flow.chains.chain import Chain
from kaflow_engine.flow.flow import Flow
from kaflow_engine.model.specs import PipelineSpec
from kaflow_engine.plan.explain.explanation import ChainPart, SidePart, StepPart
from kaflow_engine.plan.explain.groups import names_of_groups, names_of_rows, shown
from kaflow_engine.plan.explain.tables import table_boxes
from kaflow_engine.plan.planner.events.matching import (
    Matching,
    filters_at_once,
    matching_of,
    with_emission,
)
from kaflow_engine.plan.planner.events.sides import event_aliases
from kaflow_engine.plan.planner.roles import TopicRole, time_to_live
from kaflow_engine.plan.planner.wiring import relation_of
from kaflow_engine.sql.chain_shapes import Below, ChainShape, common_filters, common_key
from kaflow_engine.sql.parse import parse_expression
from kaflow_engine.sql.shape import MATCHED, Expr, JoinShape, QueryShape
from kaflow_engine.sql.syntax import DIALECT
from kaflow_engine.sql.tables.asked import answer_of


def unknown_chain(spec: PipelineSpec, wait: int) -> ChainPart:
    """Return what there is to say where columns are needed to read the queries."""
    return ChainPart(
        name=relation_of(spec, (0, 0)),
        topics=(),
        driving=None,
        filters=(),
        steps=(),
        where=(),
        require=_required(spec, None),
        wait=wait,
        emission=spec.emission.type,
        on_expiry=spec.emission.on_expiry,
        ledger=None,
    )


def chain_part(
    spec: PipelineSpec,
    queries: ChainShape,
    roles: Sequence[TopicRole],
    plan: Flow | None,
    planned: Chain | None,
    below: Below,
) -> ChainPart:
    """Return what happens in a chain.

    Args:
        spec: What the author wrote.
        queries: Its queries.
        roles: Of the topics of the pipeline.
        plan: The flow; None where columns are not known yet.
        planned: Its operators in the flow.
        below: The queries below those of outputs.
    """
    shape, driving = queries.shape, {queries.shape.driving.alias}
    roles = [role.said_by(shape.said_at) for role in roles]
    grouped = all(branch.shape.gathered for branch in queries.branches)
    own = with_emission(spec, shape, roles, grouped=grouped)
    matching = matching_of(own, shape, roles)
    ttl = next((role.ttl for role in roles if role.name == shape.driving.topic), 0)
    shared = shared_filters(queries)
    first = queries.branches[0]
    of_rows = shape.rows_of is not None
    waits = not of_rows or bool(event_aliases(shape, roles))
    ttl = time_to_live(shape.driving, roles) if of_rows else ttl
    wait = None if filters_at_once(own, shape, roles) else matching.rest if matching else ttl
    joins = () if planned is None else planned.joins
    return ChainPart(
        name=relation_of(spec, (first.output, first.branch), below.called(first.shape)),
        topics=tuple(dict.fromkeys(shape.topics)),
        driving=shape.driving.called if of_rows else shape.driving.alias,
        of_rows=of_rows,
        filters=()
        if of_rows
        else tuple(
            text_of(part) for part in (*shape.driving.filter, *shared) if part.aliases <= driving
        ),
        steps=()
        if shape.is_table
        else _steps_of(shape, roles, planned, matching, before=own.lookup == "before"),
        where=tuple(
            condition_text(part, shape) for part in shared if of_rows or not part.aliases <= driving
        ),
        require=() if of_rows else _required(own, queries),
        wait=wait if waits else None,
        emission=own.emission.type if waits else "immediate",
        on_expiry=own.emission.on_expiry,
        delay=max((join.delay for join in joins), default=0),
        latest=matching is not None and matching.latest,
        ledger=None if planned is None else planned.ledger is not None,
        tables=() if plan is None or planned is None else table_boxes(plan, planned, shape),
    )


def shared_filters(queries: ChainShape) -> tuple[Expr, ...]:
    """Return the filters that all queries of a chain have."""
    return common_filters([branch.shape for branch in queries.branches])


def _required(spec: PipelineSpec, queries: ChainShape | None) -> tuple[str, ...]:
    """Return what must not be NULL: what the author says, and the key, where all have the same."""
    if spec.emission.type != "smart":
        return ()
    if queries is None:
        keys = [write.output.key_columns for write in spec.writes]
        common = keys[0] if len({tuple(map(str.lower, key)) for key in keys}) == 1 else ()
    else:
        outputs = [spec.writes[branch.output].output for branch in queries.branches]
        both = zip(queries.branches, outputs, strict=True)
        key = common_key([branch.shape.key_of(output.key) for branch, output in both])
        common = () if key is None else outputs[0].key_columns or (key.name,)
    return tuple(dict.fromkeys([*spec.emission.require, *common]))


def _steps_of(
    shape: QueryShape,
    roles: Sequence[TopicRole],
    planned: Chain | None,
    matching: Matching | None,
    *,
    before: bool,
) -> tuple[StepPart, ...]:
    """Return the joins by key, with the sides of each."""
    groups: dict[tuple[str, ...], list[JoinShape]] = {}
    named = names_of_rows(shape)
    if planned is not None:
        by_alias = {join.alias: join for join in shape.joins}
        for number, operator in enumerate(planned.joins):
            together = [by_alias[side.alias] for side in operator.sides]
            groups[(str(number), *_key(together[0], named))] = together
    else:
        for join in shape.joins:
            groups.setdefault(("", *_key(join, named)), []).append(join)
    needs = [join.require for join in planned.joins] if planned else [None] * len(groups)
    dimensions = {role.name for role in roles if role.dimension}
    return tuple(
        StepPart(
            key=_key(together[0], named),
            sides=tuple(_side(shape, join, dimensions, matching, before) for join in together),
            inner=tuple(_called(shape, join) for join in together if join.kind == "INNER"),
            require=tuple(each for each in _conditions(need) if MATCHED not in each),
            unmatched=tuple(
                _called(shape, j) for j in together if matching and j.alias in matching.left
            ),
        )
        for together, need in zip(groups.values(), needs, strict=True)
    )


def _called(shape: QueryShape, join: JoinShape) -> str:
    source = shape.source(join.alias)
    if source.once:
        return source.called
    return "the groups" if source.query is not None and source.query.groups else join.alias


def _key(join: JoinShape, named: Mapping[str, str]) -> tuple[str, ...]:
    return tuple(sorted(shown(p.outer.meaning or p.outer.sql, named) for p in join.keys))


def _conditions(need: str | None) -> list[str]:
    parts = plain(need).split(" AND ") if need else []
    texts = [part.removesuffix(" IS NOT NULL").replace('"', "") for part in parts]
    return [text[1:-1] if text.startswith("(") and text.endswith(")") else text for text in texts]


def _side(
    shape: QueryShape,
    join: JoinShape,
    dimensions: set[str],
    matching: Matching | None,
    before: bool,
) -> SidePart:
    source, named = shape.source(join.alias), names_of_rows(shape)
    role, filters = "dimension" if source.topic in dimensions else "event", source.filter
    if source.query is not None and source.query.groups:
        named = {**named, **names_of_groups(source.query)}
        role = "rows that leave once" if source.once else "groups"
    elif source.query is not None:
        source = source.query.driving
    if source.table:
        role = "table"
    within = matching.within.get(join.alias) if matching else None
    return SidePart(
        alias=source.called if source.once else join.alias,
        topic="" if source.once else source.topic,
        events=role == "event" or source.once,
        kind=join.kind,
        role=role,
        on=tuple(
            f"{shown(p.outer.meaning or p.outer.sql, named)} = {shown(p.inner.sql, named)}"
            for p in join.keys
        ),
        filter=tuple(shown(part.sql, named) for part in filters),
        within=None if within is None else (within.before, within.after),
        several=join.several,
        asks=join.asks,
        before=(before or join.asks is not None) and role in ("groups", "table"),
    )


def text_of(expr: Expr) -> str:
    """Return an expression as it is shown."""
    return plain(expr.meaning or expr.sql).replace('"', "")


def condition_text(part: Expr, shape: QueryShape) -> str:
    """Return a condition on the rows of a query as it is shown, questions to dynamic tables as
    their author wrote them."""
    sql = part.meaning or part.sql
    for join in (join for join in shape.joins if join.asks is not None):
        for pair in join.keys:
            value, found = parse_expression(pair.outer.sql), parse_expression(pair.inner.sql)
            answer = answer_of(value, found).sql(dialect=DIALECT)
            sql = sql.replace(answer, f"dynamic_table_check('{join.asks}', {pair.outer.sql})")
    return shown(sql, names_of_rows(shape))
