"""UNION ALL below GROUP BY, DISTINCT and runs: the rows of its branches as those of one relation.

What is grouped is read once, over columns of the union whose content no branch decides: a literal
in one of them is another one elsewhere. Then each branch gets the group in its own words.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from sqlglot import exp

from kaflow_engine.errors import Location
from kaflow_engine.sql.flat import Flat, Group, Lists
from kaflow_engine.sql.groups.event_time import Clock, EventTimes, clock_of
from kaflow_engine.sql.parse import parse_expression
from kaflow_engine.sql.scope import Relation, Schemas, Scope, element, to_expr
from kaflow_engine.sql.shape import CallShape, Expr
from kaflow_engine.sql.syntax import at_line
from kaflow_engine.sql.types.operands import in_place_of
from kaflow_engine.sql.unnest import of_groups

UNION = "union"
"""What the aliases of columns of a union begin with."""


@dataclass(frozen=True, kw_only=True)
class UnionRows:
    """The rows of all branches, for a SELECT that gathers them."""

    scope: Scope
    """Its names: columns of the union."""
    flat: Flat
    """Takes what the SELECT makes of them."""
    branches: tuple[Flat, ...]
    meant: tuple[Mapping[str, Relation], ...]
    """Of each branch the relations that the aliases of the columns stand for."""

    def in_branch(self, tree: exp.Expr, number: int) -> exp.Expr:
        """Return an expression over columns of the union in the words of one branch."""
        relations = self.meant[number]

        def own(node: exp.Expr) -> exp.Expr:
            if not isinstance(node, exp.Column):
                return node
            alias, _, name = node.name.partition(".")
            found = relations[alias].column(name) if alias in relations else None
            return node if found is None else in_place_of(node, found)

        return tree.copy().transform(own, copy=False)

    def clock_of(
        self, tree: exp.Expr, *, schemas: Schemas, event_times: EventTimes
    ) -> Clock | None:
        """Return what is known of an expression that is the event time of the rows of all branches;
        None of another one."""
        first, *others = (
            clock_of(self.in_branch(tree, number), branch, schemas, event_times)
            for number, branch in enumerate(self.branches)
        )
        return first if all(each == first for each in others) else None

    def typed(self, rows: Flat) -> Flat:
        """Return what is selected of the rows in the words of the first branch."""
        outputs = {name: self.in_branch(tree, 0) for name, tree in rows.outputs.items()}
        return replace(self.branches[0], outputs=outputs)

    def gathered(self, at: Location | None) -> Flat:
        """Return the first branch, whose group takes the rows of the others, too.

        Raises:
            SqlError: A list of a row of groups is unnested.
        """
        group, *behind = self.flat.groups
        if self.flat.unnests and any(branch.groups for branch in self.branches):
            raise of_groups(at_line(at, self.flat.line))
        for number, branch in enumerate(self.branches):
            for lists in self.flat.unnests:
                trees = {name: self.in_branch(of, number) for name, of in lists.lists.items()}
                branch.unnests.append(Lists(alias=lists.alias, lists=trees))
            branch.groups.append(self._group(group, number))
        first, *others = self.branches
        last = first.groups[-1]
        last.where = group.where
        last.beside = [
            replace(each, outputs={}, record={}, sets={}, discriminator=None, alike=None)
            for each in others
        ]
        return replace(
            first,
            outputs=self.flat.outputs,
            groups=[*first.groups, *behind],
            record=self.flat.record,
            sets=self.flat.sets,
            line=self.flat.line,
            aliases=self.flat.aliases,
            discriminator=None,
            alike=None,
        )

    def _group(self, group: Group, number: int) -> Group:
        return replace(
            group,
            keys={name: self.in_branch(tree, number) for name, tree in group.keys.items()},
            calls=[self._call(call, number) for call in group.calls],
            where=[],
            branch=number,
        )

    def _call(self, call: CallShape, number: int) -> CallShape:
        own = tuple((name, self._argument(expr, number)) for name, expr in call.arguments)
        return replace(call, arguments=own)

    def _argument(self, expr: Expr, number: int) -> Expr:
        return to_expr(self.in_branch(parse_expression(expr.sql), number), expr.line)


def union_rows(branches: Sequence[Flat], scopes: Sequence[Scope], flat: Flat) -> UnionRows:
    """Return the rows of branches as those of one relation.

    Args:
        branches: Joined and filtered alike.
        scopes: The names of each: the same ones, which mean other columns.
        flat: The SELECT, without sources.
    """
    flat.aliases = set().union(*(branch.aliases for branch in branches))
    found = Scope(at=scopes[0].at, named=scopes[0].named)
    meant: list[dict[str, Relation]] = [{} for _ in branches]
    for relations in zip(*(scope.relations for scope in scopes), strict=True):
        alias = flat.unique(UNION)
        found.relations.append(_relation(alias, relations))
        for own, relation in zip(meant, relations, strict=True):
            own[alias] = relation
    if scopes[0].merged:
        alias = flat.unique(UNION)
        found.merged = {name: element(alias, name) for name in scopes[0].merged}
        for own, scope in zip(meant, scopes, strict=True):
            own[alias] = Relation(alias=alias, topics=(), outputs=scope.merged, base=alias)
    return UnionRows(scope=found, flat=flat, branches=tuple(branches), meant=tuple(meant))


def _relation(alias: str, relations: Sequence[Relation]) -> Relation:
    """Return what has the columns of relations that stand at one place in all branches."""
    first, outputs = relations[0], None
    if all(each.outputs is not None for each in relations):
        outputs = {name: element(alias, name) for name in first.outputs or ()}
    record = [name for name in first.record if all(name in each.record for each in relations)]
    return Relation(
        alias=first.alias,
        topics=tuple(dict.fromkeys(topic for each in relations for topic in each.topics)),
        outputs=outputs,
        base=alias,
        record={name: element(alias, name) for name in record},
    )
