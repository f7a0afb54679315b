"""The aggregates of a chain: entries and an operator for each GROUP BY, equal ones once."""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

from kaflow_engine.flow.edges import Driving, Rows
from kaflow_engine.flow.numbers import RUNS, aggregate_state, timed_state
from kaflow_engine.flow.operators import Aggregate, Gathers, KeyedJoin, Project
from kaflow_engine.flow.tables import Append
from kaflow_engine.flow.transforms import Transform
from kaflow_engine.flow.windows import SessionWindow
from kaflow_engine.model.columns import Column
from kaflow_engine.plan.planner.grouping.accumulators import accumulate
from kaflow_engine.plan.planner.grouping.delays import delay_behind, delay_into
from kaflow_engine.plan.planner.grouping.made import append_of, runs_of, transform_of, with_both
from kaflow_engine.plan.planner.grouping.places import (
    Places,
    own_shard,
    places_of_groups,
    shard_in,
)
from kaflow_engine.plan.planner.grouping.settings import GroupParts
from kaflow_engine.plan.planner.wiring import Grouped, projection
from kaflow_engine.sql.shape import Expr, UnnestShape


@dataclass(frozen=True, slots=True, kw_only=True)
class Inflow:
    """Rows on their way into a GROUP BY: those of a query, or of one branch of a union."""

    entry: Project
    ledger: str | None
    """What sends on rows that it judges."""
    chain: int
    """The number of the chain whose rows they are."""
    depth: int
    """How many GROUP BY stand before it, and the one that takes them."""
    delay: int
    """Milliseconds that these rows may be behind the watermark."""
    retracts: bool
    """They are rows of a table."""
    ttl: int
    """Milliseconds for which records of their topics are remembered, at most."""
    places: Places | None = None


@dataclass(slots=True, kw_only=True)
class Aggregates:
    """Those of one chain, as they are found."""

    chain: int
    rows: KeyedJoin | Driving | Rows
    """What the first of them take."""
    of_table: bool
    """These are rows of a table: they come and are taken away."""
    delay: int
    """Milliseconds that these rows may be behind the watermark."""
    ttl: int
    """Milliseconds for which records of its topics are remembered, at most."""
    ledger: str | None
    """What sends on rows that it judges, where the chain has a ledger."""
    places: Places | None = None
    """Where the rows are that the first of them take; None: not where groups could be made."""
    found: list[Grouped] = field(default_factory=list[Grouped])

    def behind(
        self,
        relation: str,
        where: Sequence[Expr],
        unnests: Sequence[UnnestShape],
        groups: Sequence[GroupParts],
        last: Grouped | None = None,
    ) -> Grouped | None:
        """Return the last GROUP BY of a query, behind those before it.

        Args:
            relation: The name of the query.
            where: Conditions on the rows that are grouped first.
            unnests: Lists of theirs that become rows.
            groups: One behind the other.
            last: What stands before the first of them; None: the rows of the chain.
        """
        for group in groups:
            inflow = self.inflow(relation, last, where, unnests, group)
            last = self.gather(relation, [inflow], group)
            where, unnests = group.shape.where, ()
        return last

    def inflow(
        self,
        relation: str,
        before: Grouped | None,
        where: Sequence[Expr],
        unnests: Sequence[UnnestShape],
        group: GroupParts,
    ) -> Inflow:
        """Return the rows that come to a GROUP BY.

        Args:
            relation: The name of the query.
            before: The GROUP BY before it; None: the rows of the chain.
            where: Conditions on the rows.
            unnests: Lists of theirs that become rows.
            group: What takes them.
        """
        depth = 1 if before is None else before.depth + 1
        name = relation if depth == 1 else f"{relation}/{depth}"
        entry = replace(
            projection(
                relation,
                self.rows,
                where,
                tuple((column, expr.sql) for column, expr in group.entered),
                unnests,
            ),
            id=f"group:{name}",
        )
        if before is not None:
            entry = replace(entry, rows=Rows(input=before.aggregate.id, key=None))
        return Inflow(
            entry=entry,
            ledger=self.ledger if before is None else before.ledger,
            chain=self.chain,
            depth=depth,
            delay=self.delay if before is None else delay_into(group, before),
            retracts=self.of_table if before is None else before.aggregate.is_table,
            ttl=self.ttl,
            places=self.places if before is None else before.places,
        )

    def gather(self, relation: str, inflows: Sequence[Inflow], group: GroupParts) -> Grouped:
        """Return a GROUP BY, or the one that does the same already.

        Args:
            relation: The name of the query.
            inflows: The rows that it takes; of a union those of each branch.
            group: What it makes of them.
        """
        depth = inflows[0].depth
        name = relation if depth == 1 else f"{relation}/{depth}"
        places = inflows[0].places if len(inflows) == 1 else None
        shard = None if places is None else shard_in(places, group.keys)
        ledgers = dict.fromkeys(each.ledger for each in inflows if each.ledger is not None)
        inputs = (*(each.entry.id for each in inflows), *ledgers)
        number = len(self.found) + 1
        delay = max(each.delay for each in inflows)
        chain = None if all(each.chain == self.chain for each in inflows) else self.chain
        if group.shape.append is not None:
            aggregate = append_of(group, group.shape.append, f"changes:{name}", inputs)
        elif group.shape.transform is not None:
            entries = tuple(each.entry.id for each in inflows)
            aggregate = transform_of(group, group.shape.transform, f"transform:{name}", entries)
        elif group.shape.run is not None:
            state = timed_state(self.chain, RUNS + number)
            runs = runs_of(group, group.shape.run, f"runs:{name}", state, inputs)
            aggregate = replace(runs, chain=chain)
        else:
            aggregate = _aggregate(
                group,
                id=f"aggregate:{name}",
                state=aggregate_state(self.chain, number),
                inputs=inputs,
                chain=chain,
                delay=delay,
                ttl=self.ttl,
                retracts=inflows[0].retracts,
                shard=None if shard == own_shard(group.keys) else shard,
                exchange=shard is None,
            )
        new = Grouped(
            depth=depth,
            entries=tuple(each.entry for each in inflows),
            aggregate=aggregate,
            delay=delay_behind(aggregate, delay),
            ledger=inflows[0].ledger if isinstance(aggregate, Transform) else None,
            places=places_of_groups(aggregate, group.keys, places)
            if isinstance(aggregate, Aggregate)
            else None,
        )
        equal = next((each for each in self.found if _bare(each) == _bare(new)), None)
        equal = equal or self._widened(new)
        if equal is None:
            self.found.append(new)
        return equal or new

    def _widened(self, new: Grouped) -> Grouped | None:
        """Return a transform that does the same but for what goes past it, with that of both."""
        for place, known in enumerate(self.found):
            found = with_both(known, new)
            if found is not None:
                self.found[place] = found
                return found
        return None


def _bare(grouped: Grouped) -> tuple[tuple[Project, ...], Gathers]:
    """Return what two must share to be one."""
    bare = replace(grouped.aggregate, id="", inputs=())
    bare = bare if isinstance(bare, Append | Transform) else replace(bare, state=0)
    return tuple(replace(each, id="") for each in grouped.entries), bare


def _aggregate(
    group: GroupParts,
    *,
    id: str,
    state: int,
    inputs: tuple[str, ...],
    chain: int | None,
    delay: int,
    ttl: int,
    retracts: bool,
    shard: str | None,
    exchange: bool,
) -> Aggregate:
    arguments = tuple(column for column, _ in group.arguments)
    accumulators, results = accumulate(
        group.shape.calls,
        {column.name: column.type for column in arguments},
        {column.name: column.type for column in group.results},
        in_sessions=isinstance(group.shape.window, SessionWindow),
        retracts=retracts,
    )
    settings = group.settings
    return Aggregate(
        id=id,
        state=state,
        inputs=inputs,
        chain=chain,
        alias=group.shape.alias,
        keys=tuple(column for column, _ in group.keys),
        window=group.shape.window,
        arguments=arguments,
        accumulators=accumulators,
        results=results,
        leaves=settings.leaves,
        each=settings.each,
        grace=settings.grace,
        on_late=settings.on_late,
        delay=delay,
        ttl=ttl if group.shape.distinct and settings.ttl is None else settings.ttl,
        retracts=retracts,
        shard=shard,
        exchange=exchange,
        timed=group.shape.timed,
    )


def behind_group(
    relation: str,
    grouped: Grouped,
    where: Sequence[Expr],
    columns: Sequence[tuple[Column, Expr]],
) -> Project:
    """Return the projection of the rows of a GROUP BY.

    Args:
        relation: Its name.
        grouped: Where they come from.
        where: HAVING.
        columns: What is selected.
    """
    return projection(
        relation,
        Rows(input=grouped.aggregate.id, key=None),
        where,
        tuple((column, expr.sql) for column, expr in columns),
        (),
    )
