"""NULLs of a SELECT: where they may not stand, and in which of its columns they leave."""

from collections.abc import Mapping, Sequence

from kaflow_engine.model.lenses.grammar.syntax import Everything, Query
from kaflow_engine.model.lenses.lowering.nulls.causes import (
    Cause,
    Causes,
    MadeRows,
    OuterRows,
    Rows,
)
from kaflow_engine.model.lenses.lowering.nulls.operands import NullSearch, SourceRows
from kaflow_engine.model.lenses.lowering.projections import Items
from kaflow_engine.model.lenses.lowering.scope import Scope
from kaflow_engine.model.sources.nulls import Operand


def nulls_of(
    query: Query, items: Items, scope: Scope, rows: Mapping[str, Rows]
) -> tuple[Rows, tuple[Operand, ...]]:
    """Return the rows that a SELECT makes, and its operands that may be NULL and must not.

    Args:
        query: The SELECT, whose names mean something.
        items: Its items, by where they go.
        scope: What names mean.
        rows: Of each source, by what the SELECT calls it.
    """
    sources = _sources(query, scope, rows)
    search = NullSearch(
        place=scope.source.place,
        sources=sources,
        driving=next(each for each in sources if each.called == scope.driving.called),
        elements=frozenset(scope.elements),
    )
    made: dict[str, Causes] = {}
    others: list[Rows] = []
    for item in items.values:
        if isinstance(item, Everything):
            others += _taken_over(item, sources)
        else:
            made[".".join(item.folded)] = search.causes(item.value)
    for item in (items.key, items.whole):
        if item is not None and not isinstance(item.value, Everything):
            search.causes(item.value)
    for of_key in items.key_fields:
        search.causes(of_key.value)
    for join in query.joins:
        if join.condition is not None:
            search.compare(join.condition)
    for node in (*(lateral.value for lateral in query.laterals), *query.groups):
        search.causes(node)
    for node, clause in ((query.where, "WHERE"), (query.having, "HAVING")):
        if node is not None:
            search.require(node, clause)
    return MadeRows(items=made, others=tuple(others)), tuple(search.found)


def _sources(query: Query, scope: Scope, rows: Mapping[str, Rows]) -> tuple[SourceRows, ...]:
    names = [each.called for each in scope.inputs]
    missing: dict[str, Cause] = {}
    for place, join in enumerate(query.joins, 1):
        side = "OUTER" if join.side == "FULL" else join.side
        lost = names[place : place + 1] if join.side in ("LEFT", "FULL") else []
        lost += names[:place] if join.side in ("RIGHT", "FULL") else []
        for name in lost:
            missing[name] = Cause(why=f"a row of the {side} JOIN may have none of '{name}'")
    return tuple(
        SourceRows(
            called=name,
            rows=OuterRows(of=rows[name], why=missing[name].why) if name in missing else rows[name],
            missing=missing.get(name),
        )
        for name in names
    )


def _taken_over(value: Everything, sources: Sequence[SourceRows]) -> list[Rows]:
    names = [name.text for name in value.of]
    if names and names[-1] == "_key":
        return []
    return [each.rows for each in sources if not names or names[0] in (each.called, "_value")]
