"""Of which columns of topics an expression is made: through lists, groups and queries below."""

from kaflow_engine.flow.operators import PLACE
from kaflow_engine.sql.shape import Expr, QueryShape

Use = tuple[str, str]
"""A source, and a column of it."""


def topics_by_alias(shape: QueryShape) -> dict[str, str]:
    """Return the topic of each source, also of those of the queries that a query looks up."""
    every = (source for each in (*shape.looked_up, shape) for source in each.sources)
    return {source.alias: source.topic for source in every if source.query is None}


def columns_behind(shape: QueryShape, expr: Expr) -> frozenset[Use]:
    """Return the columns of topics that an expression reads, also by lists and groups."""
    uses, lists = _ungrouped(shape, expr), _lists(shape)
    queries = {each.alias: each.query for each in shape.sources if each.query is not None}
    below = (
        columns_behind(queries[alias], part)
        for alias, name in uses
        if alias in queries
        for part in queries[alias].behind(alias, name)
    )
    read = {use for use in uses if use[0] not in queries}.union(*below)
    own = frozenset(use for use in read if use not in lists)
    return own.union(*(columns_behind(shape, lists[use]) for use in uses if use in lists))


def lists_behind(shape: QueryShape, expr: Expr) -> tuple[Expr, ...]:
    """Return the lists, over sources alone, of whose elements an expression is made."""
    lists = _lists(shape)
    found = [lists[use] for use in _ungrouped(shape, expr) if use in lists]
    return tuple(own for of in found for own in (lists_behind(shape, of) or (of,)))


def _ungrouped(shape: QueryShape, expr: Expr) -> tuple[Use, ...]:
    """Return what an expression reads of the rows that are grouped; nothing for a window."""
    groups = {group.alias: group for group in shape.groups}
    found: list[Use] = []
    for alias, name in expr.uses:
        if alias not in groups:
            found.append((alias, name))
            continue
        for below in groups[alias].behind(name):
            found += _ungrouped(shape, below)
    return tuple(dict.fromkeys(found))


def _lists(shape: QueryShape) -> dict[Use, Expr]:
    found = {(each.alias, name): of for each in shape.unnests for name, of in each.lists}
    return {**{(each.alias, PLACE): each.lists[0][1] for each in shape.unnests}, **found}
