"""Aggregated queries that are joined: as groups that a stream looks up, or as tables."""

from collections.abc import Sequence
from dataclasses import replace

from sqlglot import exp

from kaflow_engine.duck.quoting import identifier
from kaflow_engine.flow.windows import WINDOW_START
from kaflow_engine.model.record_columns import KEY
from kaflow_engine.sql.flat import Flat, Group
from kaflow_engine.sql.groups.event_time import TIME
from kaflow_engine.sql.scope import Relation, element
from kaflow_engine.sql.shape import HERE, ROW, CallShape, Expr, KeyPair


def looked_up(side: Flat, relation: Relation) -> tuple[Flat, Relation]:
    """Return what is joined: of an aggregated query its groups, under the alias that they have."""
    if not side.groups:
        return side, relation
    alias, once = side.groups[-1].alias, not side.changes_rows
    first, topic = side.sources[0] if once and side.sources else ("", "")
    query = replace(side, outputs={}, sets={}, discriminator=None).shape()
    groups = Flat(
        sources=[(alias, topic)],
        queries={alias: query},
        readings={alias: side.readings[first]} if first in side.readings else {},
        where=side.groups[-1].where,
        aliases=side.aliases,
        discriminator=side.discriminator,
        alike=side.alike,
        once={alias} if once else set(),
        called={alias: relation.alias} if once else {},
    )
    key, time = relation.record.get(KEY), relation.record.get(TIME)
    record = {KEY: key} if isinstance(key, exp.Column) else {}
    record |= {} if time is None else {TIME: time}
    return groups, replace(relation, base=alias, record=record, present=None)


def as_table(side: Flat, relation: Relation) -> tuple[Flat, Relation]:
    """Return a side of a join of tables: the groups of an aggregated query are one, too.

    A group has a column that is never NULL, which tells whether a joined row has it.
    """
    if not changes(side):
        return side, relation
    last = side.groups[-1]
    here = _always(bool(last.keys) or last.window is not None)
    noted = _noting(last, here)
    groups, joined = looked_up(replace(side, groups=[*side.groups[:-1], noted]), relation)
    groups.tables[last.alias] = (*last.keys, *([WINDOW_START] if last.window else []))
    groups.called[last.alias] = relation.alias
    there = element(last.alias, here.name).is_(exp.null()).not_(copy=False)
    return groups, replace(joined, present=there)


def _noting(group: Group, call: CallShape) -> Group:
    """Return a group with one more call, in the words of each branch of a union."""
    beside = [
        replace(each, groups=[*each.groups[:-1], _noting(each.groups[-1], call)])
        for each in group.beside
    ]
    return replace(group, calls=[*group.calls, call], beside=beside)


def changes(side: Flat) -> bool:
    """Tell whether a query has groups whose rows change, as those of a table do."""
    return bool(side.groups) and side.changes_rows


def _always(grouped: bool) -> CallShape:
    """Return a call that is never NULL: of a group with grouping values it never changes."""
    if not grouped:
        return CallShape(
            name=HERE,
            function="count_star",
            arguments=(),
            sql="count(*)",
            plain=True,
            filter=None,
            meaning="group",
        )
    true = Expr(sql="TRUE", uses=())
    return CallShape(
        name=HERE,
        function="bool_and",
        arguments=((HERE, true),),
        sql=f"bool_and({identifier(f'{ROW}.{HERE}')})",
        plain=True,
        filter=None,
        meaning="group",
    )


def one_group(side: Flat, keys: Sequence[KeyPair]) -> bool:
    """Tell whether a condition says all that groups are grouped by, with the start of a window, so
    that one has the key.

    Args:
        side: What is joined.
        keys: The condition.
    """
    ((alias, query),) = side.queries.items()
    group = query.groups[-1]
    names = [key for key, _ in group.keys] + ([WINDOW_START] if group.window else [])
    wanted = {identifier(f"{alias}.{name}") for name in names}
    return {pair.inner.sql for pair in keys} == wanted and len(keys) == len(wanted)
