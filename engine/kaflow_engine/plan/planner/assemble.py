"""The parts of a planned pipeline put together: its chains, and the sinks behind them."""

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from kaflow_engine.flow.decodes import decode_id
from kaflow_engine.flow.edges import Driving
from kaflow_engine.flow.flow import Flow
from kaflow_engine.flow.sources import TopicParams
from kaflow_engine.model.specs import PipelineSpec
from kaflow_engine.operators.rows.layout import key_text
from kaflow_engine.plan.planner.chain_parts import Behind, ChainParts, ended, of_tables
from kaflow_engine.plan.planner.events.matching import (
    filters_at_once,
    matching_of,
    with_emission,
)
from kaflow_engine.plan.planner.events.rows_of_groups import delay_of_sides, of_rows, with_delay
from kaflow_engine.plan.planner.events.sides import left_events, parts_early
from kaflow_engine.plan.planner.grouping.refused_groups import refuse_better_rows
from kaflow_engine.plan.planner.grouping.unions import InUnion, Unions
from kaflow_engine.plan.planner.inputs.kafka_topics import (
    dead_letter_topic,
    home_cluster,
    letters_apart,
)
from kaflow_engine.plan.planner.original_bytes import raw_condition
from kaflow_engine.plan.planner.outputs.listed_keys import key_columns
from kaflow_engine.plan.planner.outputs.output import BranchParts, OutputParts
from kaflow_engine.plan.planner.outputs.sink import sink_of
from kaflow_engine.plan.planner.outputs.throttle import throttled
from kaflow_engine.plan.planner.refusals import refuse_final, refuse_reemit
from kaflow_engine.plan.planner.roles import TopicRole
from kaflow_engine.plan.planner.steps import (
    Needs,
    keyed_joins,
    present,
    required,
)
from kaflow_engine.plan.planner.wiring import (
    ChainOperators,
    in_order,
    refuse_unnested,
)
from kaflow_engine.sql.chain_shapes import Below, common_filters, common_key
from kaflow_engine.sql.shape import Expr, OutputShape, QueryShape
from kaflow_engine.sql.types.bind import expressions
from kaflow_engine.sql.types.origins import lists_behind

MAX_DEFAULT_PARTITIONS = 4


@dataclass(frozen=True, slots=True, kw_only=True)
class PlanParts:
    """What a plan is put together from."""

    spec: PipelineSpec
    roles: tuple[TopicRole, ...]
    topics: tuple[TopicParams, ...]
    chains: tuple[ChainParts, ...]
    outputs: tuple[OutputParts, ...]


def assemble(parts: PlanParts) -> Flow:
    """Put a flow together.

    Raises:
        ModelError: What the author asks of emission does not fit the joins.
    """
    spec = parts.spec
    joining = [
        with_emission(
            spec, chain.shape, parts.roles, grouped=all(each.gathered for each in chain.branches)
        )
        for chain in parts.chains
    ]
    for own, chain in zip(joining, parts.chains, strict=True):
        refuse_final(own, chain.shape, chain.steps, parts.roles)
        aliases = sorted(left_events(chain.shape, parts.roles))
        left = [chain.shape.source(alias).called or alias for alias in aliases]
        refuse_better_rows(own, chain.branches, left)
    steps = max(len(chain.steps) for chain in parts.chains)
    refuse_reemit(spec, [chain.queries for chain in parts.chains], steps)
    refuse_unnested(spec, [branch for output in parts.outputs for branch in output.branches])
    chains = _chains(parts, joining)
    throttles, sinks = throttled(
        spec,
        parts.outputs,
        [sink_of(spec, output, chains) for output in parts.outputs],
        {each.id: chain.number for chain in chains for each in chain.projects.values()},
    )
    return Flow(
        pipeline=spec.id,
        name=spec.name,
        sources=parts.topics,
        operators=in_order(parts.topics, chains, throttles),
        sinks=sinks,
        partitions=spec.partitions or min(os.cpu_count() or 1, MAX_DEFAULT_PARTITIONS),
        dead_letter_topic=dead_letter_topic(spec),
        consumer_group=spec.consumer_group,
        auto_offset_reset=spec.auto_offset_reset,
        positions=spec.positions,
        cluster=home_cluster(spec),
        letters=letters_apart(spec),
        delivery=spec.delivery,
        dimensions_first=spec.dimensions_first,
        max_dead_letters=spec.dead_letters.max_count,
        max_dead_rate=spec.dead_letters.max_rate,
    )


def _chains(parts: PlanParts, joining: Sequence[PipelineSpec]) -> list[ChainOperators]:
    """Lay chains out, those that others look up before them; returned in their order."""
    found: dict[int, ChainOperators] = {}
    tables: dict[QueryShape, str] = {}
    branches = [branch for chain in parts.chains for branch in chain.branches]
    below = Below.of(branch.shape for branch in branches)
    unions = Unions(first_number=len(parts.chains), beside=below.union)
    left = list(zip(joining, parts.chains, strict=True))
    while left:
        own, chain = next(
            (own, chain)
            for own, chain in left
            if all(each in tables for branch in chain.branches for each in branch.shape.looked_up)
        )
        left.remove((own, chain))
        laid_out = (*found.values(), *unions.made())
        roles = tuple(role.said_by(chain.shape.said_at) for role in parts.roles)
        if chain.shape.rows_of is not None:
            made, waiting = of_rows(own, chain, roles, tables, laid_out, below)
        else:
            delay = delay_of_sides(own, chain, tables, laid_out)
            made, waiting = _chain(own, parts, chain, roles, tables, below, delay)
        found[made.number] = made
        unions.take(waiting)
        tables |= {**made.looked_up, **unions.looked_up}
    chains = [found[chain.queries.number] for chain in parts.chains]
    return [*(each.ended(unions.entries.get(each.number, {})) for each in chains), *unions.made()]


def _chain(
    spec: PipelineSpec,
    whole: PlanParts,
    parts: ChainParts,
    roles: tuple[TopicRole, ...],
    tables: Mapping[QueryShape, str],
    below: Below,
    delay: int,
) -> tuple[ChainOperators, list[InUnion]]:
    if parts.shape.is_table:
        return of_tables(spec, parts, roles, tables, below, _looking_up(whole, parts))
    shape, steps, number = parts.shape, parts.steps, parts.queries.number
    alias = shape.driving.alias
    shared = common_filters([branch.shape for branch in parts.branches])
    before = [part for part in shared if part.aliases <= {alias}]
    early = {part.sql for part in before}
    after = [
        [part for part in branch.shape.where if part.sql not in early] for branch in parts.branches
    ]
    wanted = _wanted(spec, parts.branches)
    needs, matching = required(spec, steps, wanted), matching_of(spec, shape, roles)
    waits = not filters_at_once(spec, shape, roles)
    if not waits:  # what later look-ups compare need not be there
        needs = Needs(driving=(), steps=tuple(() for _ in steps))
    if matching is not None:
        needs = matching.needs(needs, steps)
    finish = [
        expr
        for branch, own in zip(parts.branches, after, strict=True)
        for expr in (*own, *_lists(branch), *branch.finishing)
    ]
    later = [
        *(
            (expr, branch.binder)
            for branch, own in zip(parts.branches, after, strict=True)
            for expr in (*own, *_lists(branch), *branch.computed)
        ),
        *((e, parts.binder) for n in needs.steps for e in n),
        *((e, parts.binder) for s in steps[1:] for e in s.outer),
    ]
    writes = [branch.write for branch in parts.branches]
    uncertain = _uncertain_keys(spec, parts.branches, wanted)
    headers = [expr for branch in parts.branches for expr in branch.headers]
    raw = raw_condition(spec, writes, alias, uncertain, later, headers) if steps else None
    late = [
        g.settings.on_late == "dead_letter" or g.shape.run or g.shape.transform
        for b in parts.branches
        for g in b.groups
    ]
    role = next(role for role in roles if role.name == shape.driving.topic)
    driving = Driving(
        input=decode_id(role.clock(shape.driving)),
        alias=alias,
        columns=(),
        filter=" AND ".join(f"({part.sql})" for part in before) or None,
        key=key_text(steps[0].key) if steps else None,
        needs=None if spec.emission.type == "final" else present(needs.driving),
        raw="TRUE" if any(late) else raw,
        ttl=role.ttl if matching is None else matching.rest,
        emission=spec.emission.type,
        on_expiry="emit" if matching and matching.left else spec.emission.on_expiry,
        reemit=spec.on_dimension_update == "reemit",
        waits=waits,
        chain=number,
    )
    finish += matching.times if matching else ()
    driving, joined = keyed_joins(
        spec, shape, steps, needs, finish, roles, parts.types, driving, tables, parts.keys
    )
    if matching is not None:
        joined = matching.applied(joined)
    joined = with_delay(joined, delay) if delay else joined
    filters = [part for own in after for part in own]
    filters += [of for branch in parts.branches for of in _lists(branch)]
    has_ledger = parts_early(spec, shape, steps, roles, filters, fails=raw == "TRUE")
    return ended(
        spec,
        parts,
        after,
        Behind.of_records(driving, joined, has_ledger=has_ledger),
        below,
    )


def _looking_up(whole: PlanParts, table: ChainParts) -> list[Expr]:
    """Return the expressions of the queries that look rows of a table up."""
    own = {each.shape for each in table.queries.branches if each.is_looked_up}
    shapes = [each.shape for chain in whole.chains for each in chain.queries.branches]
    return [
        expr
        for shape in shapes
        if any(source.query in own for source in shape.sources)
        for expr in expressions(shape)
    ]


def _uncertain_keys(
    spec: PipelineSpec, branches: Sequence[BranchParts], wanted: Sequence[OutputShape]
) -> list[Expr]:
    """Return the keys of outputs that may be NULL in a finished row."""
    complete = spec.emission.on_expiry == "drop"
    certain = {column.expr.sql for column in wanted} if complete else set[str]()
    keys = (branch.key for branch in branches if branch.key is not None and not branch.groups)
    return [e.expr for e in keys if e.role != "own_key" and e.expr.sql not in certain]


def _lists(branch: BranchParts) -> list[Expr]:
    return [of for unnest in branch.shape.unnests for _, of in unnest.lists]


def _wanted(spec: PipelineSpec, branches: Sequence[BranchParts]) -> list[OutputShape]:
    """Return what must not be NULL under smart emission: what is required, and a key of all."""
    if spec.emission.type != "smart":
        return []
    found = [
        column
        for name in spec.emission.require
        for branch in branches
        if not branch.groups and (column := branch.shape.column(name))
    ]
    key = common_key([None if branch.groups else branch.key for branch in branches])
    if key is not None:
        first = branches[0]
        for column in key_columns(first.write, first.shape):
            found += _filled(first.shape, column)
    return list({column.expr.sql: column for column in found}.values())


def _filled(shape: QueryShape, key: OutputShape) -> list[OutputShape]:
    """Return a key, or the lists of joined sides of whose elements it is made: rows wait for them.

    A list of the driving record does not change: where it is empty, there is no row.
    """
    lists = lists_behind(shape, key.expr)
    if not lists:
        return [key]
    joined = [of for of in lists if not of.aliases <= {shape.driving.alias}]
    return [OutputShape(name=key.name, expr=of) for of in joined]
