"""The event time of the rows of groups, and the key of changes, where a query reads them."""

from collections.abc import Set
from dataclasses import replace

from kaflow_engine.flow.tables import APPEND_KEY
from kaflow_engine.flow.windows import ROW_TIME
from kaflow_engine.sql.groups.shapes import is_passed
from kaflow_engine.sql.shape import GroupShape, QueryShape
from kaflow_engine.sql.types.bind import expressions


def with_row_times(shape: QueryShape, *, of_last: bool = False) -> QueryShape:
    """Return a query whose groups have their event time as a column where something reads it, and
    whose changes of tables have the key of their row there.

    What names a window reads nothing: the rows of a group that leave once have their time anyway.

    Args:
        shape: The query.
        of_last: Another query reads the time of its last groups.
    """
    read = {use for expr in expressions(shape) for use in expr.uses}
    last = len(shape.groups) - 1
    return replace(
        shape,
        sources=tuple(
            source
            if source.query is None
            else replace(
                source,
                query=with_row_times(source.query, of_last=(source.alias, ROW_TIME) in read),
            )
            for source in shape.sources
        ),
        groups=tuple(
            timed(group)
            if (group.alias, ROW_TIME) in read or (of_last and number == last)
            else _without_key(replace(group, beside=tuple(map(with_row_times, group.beside))), read)
            for number, group in enumerate(shape.groups)
        ),
    )


def _without_key(group: GroupShape, read: Set[tuple[str, str]]) -> GroupShape:
    if group.append is None or (group.alias, APPEND_KEY) in read:
        return group
    return replace(group, keys=tuple(each for each in group.keys if each[0] != APPEND_KEY))


def timed(group: GroupShape) -> GroupShape:
    """Return a group whose rows have their event time as a column."""
    beside = (with_row_times(each, of_last=True) for each in group.beside)
    return replace(group, timed=not group.appends or group.distinct, beside=tuple(beside))


def without_unread(shape: QueryShape, outside: Set[tuple[str, str]] = frozenset()) -> QueryShape:
    """Return a query whose transforms let only those record columns pass that something reads.

    Args:
        shape: The query.
        outside: What another query reads of its rows.
    """
    own = (*shape.where, *(output.expr for output in shape.outputs))
    joined = (pair.outer for join in shape.joins for pair in join.keys)
    read = {*outside, *(use for expr in (*own, *joined) for use in expr.uses)}
    groups: list[GroupShape] = []
    for group in reversed(shape.groups):
        if group.transform is not None:
            kept = (e for e in group.keys if not is_passed(e[0]) or (group.alias, e[0]) in read)
            group = replace(group, keys=tuple(kept))
        read |= {use for expr in (*group.expressions, *group.where) for use in expr.uses}
        groups.append(replace(group, beside=tuple(map(without_unread, group.beside))))
    sources = (
        each if each.query is None else replace(each, query=without_unread(each.query, read))
        for each in shape.sources
    )
    return replace(shape, groups=tuple(reversed(groups)), sources=tuple(sources))
