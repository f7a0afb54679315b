"""GROUP BY, DISTINCT and runs over a UNION ALL: one operator that takes the rows of all branches.

Where these are rows of several chains, it has a chain of its own, whose watermark follows the
topics of all of them.
"""

from collections.abc import Collection, Sequence
from dataclasses import dataclass, field

from kaflow_engine.flow.operators import Project
from kaflow_engine.plan.planner.grouping.aggregates import Aggregates, Inflow, behind_group
from kaflow_engine.plan.planner.outputs.output import BranchParts
from kaflow_engine.plan.planner.wiring import ChainOperators, Grouped
from kaflow_engine.sql.shape import QueryShape


@dataclass(frozen=True, slots=True)
class InUnion:
    """A branch of a union whose rows have come to the group that takes those of all branches."""

    relation: str
    branch: BranchParts
    at: int
    """Which of its groups that is."""
    inflow: Inflow
    aggregates: Aggregates
    """Of the chain whose rows they are."""

    @property
    def last(self) -> bool:
        """Whether no group stands behind it."""
        return self.at == len(self.branch.groups) - 1


def first_shared(branch: BranchParts, start: int, beside: Collection[QueryShape]) -> int | None:
    """Return the first group of a branch that takes rows of others, too, or is that of another
    branch; None: it has none.

    Args:
        branch: Which one.
        start: The first of its groups that counts.
        beside: Branches whose last group is that of another one.
    """
    last = len(branch.groups) - 1
    for number, group in enumerate(branch.groups[start:], start):
        if group.shape.beside or (number == last and branch.shape in beside):
            return number
    return None


@dataclass(slots=True, kw_only=True)
class Unions:
    """Lays out the groups of unions, as the rows of their branches are known."""

    first_number: int
    """The number of the first chain of their own."""
    beside: Collection[QueryShape]
    """Branches whose last group is that of another one."""
    entries: dict[int, dict[tuple[int, int], Project]] = field(
        default_factory=dict[int, dict[tuple[int, int], Project]]
    )
    """Projections of joined rows, by the number of their chain and the place of their branch."""
    looked_up: dict[QueryShape, str] = field(default_factory=dict[QueryShape, str])
    """The ids of the aggregates that joins look up."""
    _waiting: list[InUnion] = field(default_factory=list[InUnion])
    _numbers: dict[tuple[int, ...], Aggregates] = field(
        default_factory=dict[tuple[int, ...], Aggregates]
    )
    _made: list[ChainOperators] = field(default_factory=list[ChainOperators])

    def take(self, branches: Sequence[InUnion]) -> None:
        """Take branches, and lay out the groups all of whose branches are there."""
        self._waiting += branches
        while (found := next(filter(None, map(self._complete, self._waiting)), None)) is not None:
            self._waiting.remove(found[0])
            self._gather(found)

    def made(self) -> list[ChainOperators]:
        """Return the groups, by chain."""
        return self._made

    def _complete(self, first: InUnion) -> list[InUnion] | None:
        """Return a branch with those beside it; None: they are not all there."""
        wanted = first.branch.groups[first.at].shape.beside
        output = first.branch.place[0]
        there = {
            each.branch.shape: each
            for each in self._waiting
            if each.last and each is not first and each.branch.place[0] == output
        }
        if not wanted or not all(shape in there for shape in wanted):
            return None
        return [first, *(there[shape] for shape in wanted)]

    def _gather(self, branches: Sequence[InUnion]) -> None:
        first = branches[0]
        aggregates = self._aggregates(branches)
        known = len(aggregates.found)
        group = first.branch.groups[first.at]
        grouped = aggregates.gather(first.relation, [each.inflow for each in branches], group)
        if grouped in aggregates.found[known:]:
            for each in branches:
                if each.inflow.depth == 1 or each.inflow.ledger is not None:
                    of_chain = self.entries.setdefault(each.inflow.chain, {})
                    of_chain[each.branch.place] = each.inflow.entry
        self._go_on(first, aggregates, grouped, known)

    def _go_on(self, first: InUnion, aggregates: Aggregates, grouped: Grouped, known: int) -> None:
        """Lay out what stands behind a group of a union, up to the next one."""
        branch, groups = first.branch, first.branch.groups
        shared = first_shared(branch, first.at + 1, self.beside)
        where = groups[first.at].shape.where
        last = aggregates.behind(first.relation, where, (), groups[first.at + 1 : shared], grouped)
        assert last is not None
        projects: dict[tuple[int, int], Project] = {}
        if shared is not None:
            where = groups[shared - 1].shape.where
            inflow = aggregates.inflow(first.relation, last, where, (), groups[shared])
            self._waiting.append(InUnion(first.relation, branch, shared, inflow, aggregates))
        elif branch.place[1] < 0:
            self.looked_up[branch.shape] = last.aggregate.id
        else:
            having = groups[-1].shape.where
            projects[branch.place] = behind_group(first.relation, last, having, branch.columns)
        self._made.append(
            ChainOperators(
                number=aggregates.chain,
                steps=(),
                joins=(),
                projects=projects,
                ends={},
                grouped=tuple(aggregates.found[known:]),
            )
        )

    def _aggregates(self, branches: Sequence[InUnion]) -> Aggregates:
        """Return what makes groups of the rows of these branches: in their chain, or in one of
        their own where there are several."""
        chains = tuple(sorted({each.inflow.chain for each in branches}))
        if len(chains) == 1:
            return branches[0].aggregates
        if chains not in self._numbers:
            rows = branches[0].inflow.entry.rows
            self._numbers[chains] = Aggregates(
                chain=self.first_number + len(self._numbers),
                rows=rows,
                of_table=False,
                delay=0,
                ttl=0,
                ledger=None,
            )
        found = self._numbers[chains]
        found.ttl = max(found.ttl, *(each.inflow.ttl for each in branches))
        return found
