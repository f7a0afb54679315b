"""A chain, laid out: its tables, and what stands behind its tables or joins."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

from kaflow_engine.flow.chains import rows_rest
from kaflow_engine.flow.edges import Driving, Rows
from kaflow_engine.flow.numbers import ledger_id
from kaflow_engine.flow.operators import KeyedJoin, Project
from kaflow_engine.model.specs import PipelineSpec
from kaflow_engine.plan.planner.grouping.accumulators import follows_order
from kaflow_engine.plan.planner.grouping.aggregates import Aggregates, behind_group
from kaflow_engine.plan.planner.grouping.settings import coalescing
from kaflow_engine.plan.planner.outputs.output import BranchParts
from kaflow_engine.plan.planner.steps import KeyStep
from kaflow_engine.plan.planner.tables.chain import Tables
from kaflow_engine.plan.planner.tables.keys import TableKeys
from kaflow_engine.plan.planner.wiring import ChainOperators, ledger_after, projection, relation_of
from kaflow_engine.sql.chain_shapes import ChainShape
from kaflow_engine.sql.shape import Expr, QueryShape
from kaflow_engine.sql.types.bind import Binder


@dataclass(frozen=True, slots=True, kw_only=True)
class ChainParts:
    """What a chain is put together from."""

    queries: ChainShape
    steps: Sequence[KeyStep]
    types: dict[tuple[str, str], str]
    """Of the columns of its topics, by alias."""
    keys: TableKeys
    binder: Binder
    branches: tuple[BranchParts, ...]

    @property
    def shape(self) -> QueryShape:
        """The first query: its sources and joins are those of all."""
        return self.queries.shape


def of_tables(spec: PipelineSpec, parts: ChainParts) -> ChainOperators:
    """Lay out a chain whose rows are those of tables."""
    where = [branch.shape.where for branch in parts.branches]
    tables = Tables(
        spec=spec,
        chain=parts.queries.number,
        shape=parts.shape,
        binder=parts.binder,
        types=parts.types,
        keys=parts.keys,
        each=any(_shows_each(spec, branch) for branch in parts.branches),
    )
    read = [expr for own in where for expr in own]
    read += [expr for branch in parts.branches for expr in branch.finishing]
    driving, rows = tables.make(read)
    return replace(ended(spec, parts, where, driving, (), False, rows), tables=tuple(tables.found))


def ended(
    spec: PipelineSpec,
    parts: ChainParts,
    where: Sequence[Sequence[Expr]],
    driving: Driving,
    joined: tuple[KeyedJoin, ...],
    has_ledger: bool,
    table: Rows | None = None,
) -> ChainOperators:
    """Return a chain with what stands behind its joins.

    Args:
        spec: What the author wrote.
        parts: What is known of the chain.
        where: Of each branch the conditions that are left.
        driving: How driving records become rows.
        joined: Its joins.
        has_ledger: Whether its rows part.
        table: Where its rows come from, if they are those of a table.
    """
    number, rows = driving.chain, table or (joined[-1] if joined else driving)
    aggregates = Aggregates(
        chain=number,
        rows=rows,
        delay=driving.ttl if any(rows_rest(driving, join) for join in joined) else 0,
        ttl=max([driving.ttl, *(s.ttl for j in joined for s in j.sides if s.role == "event")]),
        ledger=ledger_id(number) if has_ledger else None,
        of_table=table is not None,
    )
    ends: dict[tuple[int, int], Project] = {}
    projects: dict[tuple[int, int], Project] = {}
    looked_up: dict[QueryShape, str] = {}
    for branch, own in zip(parts.branches, where, strict=True):
        relation, unnests = relation_of(spec, branch.place), branch.shape.unnests
        columns = tuple((column, expr.sql) for column, expr in branch.columns)
        if not branch.groups:
            project = projection(relation, rows, own, columns, unnests)
            ends[branch.place] = projects[branch.place] = project
            continue
        last = aggregates.behind(relation, own, unnests, branch.groups)
        for each in aggregates.found:
            if each.depth == 1 and each.entry not in ends.values():
                ends[branch.place] = each.entry
        if branch.place[1] < 0:
            looked_up[branch.shape] = last.aggregate.id
            continue
        having = branch.groups[-1].shape.where
        projects[branch.place] = behind_group(relation, last, having, branch.columns)
    return ChainOperators(
        number=number,
        steps=parts.steps,
        joins=joined,
        projects=projects,
        ends=ends,
        ledger=ledger_after(number, joined, list(ends.values())) if has_ledger else None,
        grouped=tuple(aggregates.found),
        looked_up=looked_up,
    )


def _shows_each(spec: PipelineSpec, branch: BranchParts) -> bool:
    """Tell whether every change counts: it leaves, is looked up, has its place among others, or is
    the first row of the only group, which then stays."""
    ordered = any(follows_order(group.shape) or not group.keys for group in branch.groups)
    return ordered or branch.place[1] < 0 or coalescing(spec, branch.write) == "none"
