"""The tables of a chain, as `kaflow explain` shows them."""

from collections.abc import Iterator, Mapping, Sequence

from kaflow_engine.flow.chains.chain import Chain
from kaflow_engine.flow.edges import Driving
from kaflow_engine.flow.flow import Flow
from kaflow_engine.flow.graph import source_of
from kaflow_engine.flow.tables import Materialize, TableJoin
from kaflow_engine.model.durations import format_duration
from kaflow_engine.plan.explain.explanation import BoxPart
from kaflow_engine.plan.explain.groups import names_of_groups, shown
from kaflow_engine.sql.shape import QueryShape, SourceShape

_KINDS = {
    (False, False): "INNER",
    (True, False): "LEFT",
    (False, True): "RIGHT",
    (True, True): "FULL",
}
_KEYS = {
    "join": "the join key",
    "left": "that of the left row, which meets one row at most",
    "right": "that of the right row, which meets one row at most",
    "pair": "the keys of both rows",
}


def table_boxes(flow: Flow, chain: Chain, shape: QueryShape) -> tuple[BoxPart, ...]:
    """Return what there is to say of the tables of a chain, each behind those that it reads."""
    return tuple(_boxes(flow, chain.tables, shape))


def _boxes(
    flow: Flow, tables: Sequence[Materialize | TableJoin], shape: QueryShape
) -> Iterator[BoxPart]:
    joins = iter(shape.joins)
    named = {name: said for each in shape.looked_up for name, said in names_of_groups(each).items()}
    changes = {source.alias for source in shape.sources if source.changes}
    for source in shape.sources if shape.is_table else ():
        if source.query is not None:
            yield BoxPart(title=f"groups {source.called}", rows=tuple(_grouped(source, named)))
    for each in tables:
        match each:
            case Materialize(rows=Driving() as edge):
                names = dict.fromkeys((source_of(flow, edge).name, edge.alias))
                title = f"table {' '.join(names)}"
                rows = tuple(_kept(each, edge, of_changes=edge.alias in changes))
                yield BoxPart(title=title, rows=rows)
            case Materialize():
                pass  # it gives the joined rows the key that their box tells
            case TableJoin():
                join = next(joins)
                pairs = [(p.outer.sql, p.inner.sql) for p in join.keys]
                on = " AND ".join(f"{shown(a, named)} = {shown(b, named)}" for a, b in pairs)
                kind = _KINDS[each.left.preserved, each.right.preserved]
                title = f"{kind} JOIN {shape.source(join.alias).called or join.alias}"
                yield BoxPart(title=title, rows=tuple(_joined(each, on)))


def _grouped(source: SourceShape, named: Mapping[str, str]) -> Iterator[tuple[str, str]]:
    assert source.query is not None
    yield "key", ", ".join(said for said, _ in source.query.groups[-1].named) or "none: one row"
    for part in source.filter:
        yield "HAVING", shown(part.sql, named)


def _kept(table: Materialize, edge: Driving, *, of_changes: bool) -> Iterator[tuple[str, str]]:
    yield "key", ", ".join(column.name for column, _ in table.keys)
    if edge.filter is not None:
        yield "WHERE", f"{edge.filter.replace(chr(34), '')} (a row that stops passing is deleted)"
    if table.operation is not None:
        yield "deletes", "records whose operation is d, and those without a value"
    elif table.deletes is not None:
        yield "deletes", "records without a value"
    else:
        yield "deletes", "nothing: a record without a value does not say which row"
    lasts = "until they are deleted"
    if table.retain is not None:
        lasts = f"{format_duration(table.retain)} after their last change"
    yield "kept", f"the row of each key, {lasts}"
    if of_changes:
        yield "cost", "state that grows with the keys: changes do not say the row before"


def _joined(join: TableJoin, on: str) -> Iterator[tuple[str, str]]:
    yield "on", on
    yield "key", f"of a joined row: {_KEYS[join.key]}"
    yield "kept", "the rows of both sides, and the joined rows where these have another key"
