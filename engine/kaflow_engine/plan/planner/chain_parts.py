"""A chain, laid out: its tables, and what stands behind its tables or joins."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from kaflow_engine.flow.chains.chain import rows_rest
from kaflow_engine.flow.edges import Driving, Rows
from kaflow_engine.flow.numbers import ledger_id
from kaflow_engine.flow.operators import KeyedJoin, Project
from kaflow_engine.flow.tables import Materialize, TableJoin
from kaflow_engine.model.specs import PipelineSpec
from kaflow_engine.plan.planner.grouping.accumulators import follows_order
from kaflow_engine.plan.planner.grouping.aggregates import Aggregates, behind_group
from kaflow_engine.plan.planner.grouping.places import Places, places_of_join
from kaflow_engine.plan.planner.grouping.settings import coalescing
from kaflow_engine.plan.planner.grouping.unions import InUnion, first_shared
from kaflow_engine.plan.planner.outputs.output import BranchParts
from kaflow_engine.plan.planner.roles import TopicRole
from kaflow_engine.plan.planner.steps import KeyStep
from kaflow_engine.plan.planner.tables.chain import Tables
from kaflow_engine.plan.planner.tables.keys import TableKeys
from kaflow_engine.plan.planner.wiring import ChainOperators, projection, relation_of
from kaflow_engine.sql.chain_shapes import Below, ChainShape
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


def of_tables(
    spec: PipelineSpec,
    parts: ChainParts,
    roles: Sequence[TopicRole],
    groups: Mapping[QueryShape, str],
    below: Below,
    looking_up: Sequence[Expr],
) -> tuple[ChainOperators, list[InUnion]]:
    """Lay out a chain whose rows are those of tables.

    Args:
        spec: What the author wrote.
        parts: What is known of the chain.
        roles: The topics.
        groups: The ids of the aggregates whose groups are joined.
        below: As in `ended`.
        looking_up: What others that look its rows up read.
    """
    where = [branch.shape.where for branch in parts.branches]
    tables = Tables(
        spec=spec,
        chain=parts.queries.number,
        shape=parts.shape,
        binder=parts.binder,
        types=parts.types,
        keys=parts.keys,
        each=any(_shows_each(spec, branch) for branch in parts.branches),
        at=spec.place(*parts.branches[0].write.query_at),
        groups=groups,
        clocks={role.name: role.clock for role in roles},
    )
    read = [expr for own in where for expr in own]
    read += [*looking_up, *(expr for branch in parts.branches for expr in branch.finishing)]
    lists = (of for branch in parts.branches for each in branch.shape.unnests for of in each.lists)
    read += [expr for _, expr in lists]
    behind = Behind(rows=tables.make(read), of_table=True)
    return ended(spec, parts, where, behind, below, tables=tuple(tables.found))


@dataclass(frozen=True, slots=True, kw_only=True)
class Behind:
    """What the projections and groups of a chain stand behind."""

    rows: KeyedJoin | Driving | Rows
    """Where its rows come from: of a table, an edge from it."""
    of_table: bool = False
    """These are rows of a table."""
    joined: tuple[KeyedJoin, ...] = ()
    has_ledger: bool = False
    """Whether its rows part."""
    delay: int = 0
    """Milliseconds that rows may be behind the watermark."""
    ttl: int = 0
    """Milliseconds for which records of its topics are remembered, at most."""
    waits_keyless: bool = False
    """Rows without a key wait until their time is up, each in the place of its record."""

    @classmethod
    def of_records(
        cls, driving: Driving, joined: tuple[KeyedJoin, ...], *, has_ledger: bool
    ) -> "Behind":
        """Return what stands behind driving records, and what is joined to them."""
        waits = any(rows_rest(driving, join) for join in joined)
        events = (s.ttl for join in joined for s in join.sides if s.role == "event")
        return cls(
            rows=joined[-1] if joined else driving,
            joined=joined,
            has_ledger=has_ledger,
            delay=max((join.delay for join in joined), default=0) + (driving.ttl if waits else 0),
            ttl=max([driving.ttl, *events]),
            waits_keyless=waits_keyless(driving, joined),
        )


def waits_keyless(driving: Driving, joined: Sequence[KeyedJoin]) -> bool:
    """Tell whether rows without a key wait in the last join, as final ones do, and those that may
    leave without a match of events."""
    last = joined[-1:]
    matches = any(each.events and not each.inner for each in last)
    return driving.emission == "final" or (driving.emission == "on_match" and matches)


def ended(
    spec: PipelineSpec,
    parts: ChainParts,
    where: Sequence[Sequence[Expr]],
    behind: Behind,
    below: Below,
    tables: tuple[Materialize | TableJoin, ...] = (),
) -> tuple[ChainOperators, list[InUnion]]:
    """Return a chain with what stands behind its joins, and its rows that unions gather.

    Args:
        spec: What the author wrote.
        parts: What is known of the chain.
        where: Of each branch the conditions that are left.
        behind: What it ends.
        below: The queries below those of outputs.
        tables: What makes its rows, where these are rows of a table.
    """
    number, rows, has_ledger = parts.queries.number, behind.rows, behind.has_ledger
    aggregates = Aggregates(
        chain=number,
        rows=rows,
        delay=behind.delay,
        ttl=behind.ttl,
        ledger=ledger_id(number) if has_ledger else None,
        of_table=behind.of_table,
        places=_places(parts, behind),
    )
    ends: dict[tuple[int, int], Project] = {}
    projects: dict[tuple[int, int], Project] = {}
    looked_up: dict[QueryShape, str] = {}
    waiting: list[InUnion] = []
    for branch, own in zip(parts.branches, where, strict=True):
        relation = relation_of(spec, branch.place, below.called(branch.shape))
        unnests = branch.shape.unnests
        columns = tuple((column, expr.sql) for column, expr in branch.columns)
        if branch.place[1] < 0 and not branch.groups:
            assert isinstance(rows, Rows)
            looked_up[branch.shape] = rows.input
            continue
        if not branch.groups:
            project = projection(relation, rows, own, columns, unnests)
            ends[branch.place] = projects[branch.place] = project
            continue
        shared = first_shared(branch, 0, below.union)
        last = aggregates.behind(relation, own, unnests, branch.groups[:shared])
        for each in aggregates.found:
            if each.depth == 1 and each.entries[0] not in ends.values():
                ends[branch.place] = each.entries[0]
        if shared is not None:
            if last is not None:
                own, unnests = branch.groups[shared - 1].shape.where, ()
            inflow = aggregates.inflow(relation, last, own, unnests, branch.groups[shared])
            waiting.append(InUnion(relation, branch, shared, inflow, aggregates))
            continue
        assert last is not None
        if branch.place[1] < 0:
            looked_up[branch.shape] = last.aggregate.id
            continue
        having = branch.groups[-1].shape.where
        projects[branch.place] = behind_group(relation, last, having, branch.columns)
    latest = {entry.id: entry for each in aggregates.found for entry in each.entries}
    ends = {place: latest.get(each.id, each) for place, each in ends.items()}
    made = ChainOperators(
        number=number,
        steps=parts.steps,
        joins=behind.joined,
        projects=projects,
        ends=ends,
        grouped=tuple(aggregates.found),
        looked_up=looked_up,
        tables=tables,
        has_ledger=has_ledger,
    )
    return made, waiting


def _places(parts: ChainParts, behind: Behind) -> Places | None:
    """Return where joined rows are, if groups can be made there.

    A ledger has its rows elsewhere. Rows without a key that wait do so in many places.
    """
    if not behind.joined or behind.has_ledger or behind.waits_keyless:
        return None
    return places_of_join(parts.steps[-1])


def _shows_each(spec: PipelineSpec, branch: BranchParts) -> bool:
    """Tell whether every change counts: it leaves, is looked up, has its place among others, is a
    row of its own, or is the first row of the only group, which then stays."""
    ordered = any(
        follows_order(group.shape) or group.shape.append is not None or not group.keys
        for group in branch.groups
    )
    return ordered or branch.place[1] < 0 or coalescing(spec, branch.write) == "none"
