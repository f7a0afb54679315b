"""Conditions on one table, asked of its rows before they are joined."""

from collections.abc import Sequence
from dataclasses import replace

from kaflow_engine.sql.chain_shapes import chain_shapes, common_filters
from kaflow_engine.sql.shape import Expr, QueryShape
from kaflow_engine.sql.tables.joined import keeps_filter


def with_source_filters(
    outputs: Sequence[Sequence[QueryShape]],
) -> tuple[tuple[QueryShape, ...], ...]:
    """Move conditions to the tables that they are about, where that is the same.

    Queries that read the same tables share what is kept of them: only conditions that all of these
    queries have are moved.

    Args:
        outputs: Of each output the branches of its query.
    """
    found = [list(branches) for branches in outputs]
    for chain in chain_shapes(outputs):
        if not chain.shape.is_table or any(branch.branch < 0 for branch in chain.branches):
            continue
        common = common_filters([branch.shape for branch in chain.branches])
        for branch in chain.branches:
            found[branch.output][branch.branch] = _moved(branch.shape, common)
    return tuple(tuple(branches) for branches in found)


def _moved(shape: QueryShape, common: Sequence[Expr]) -> QueryShape:
    moved = {part.sql: alias for part in common if (alias := _only_source(shape, part))}
    sources = tuple(
        replace(
            source,
            filter=(
                *source.filter,
                *{p.sql: p for p in shape.where if moved.get(p.sql) == source.alias}.values(),
            ),
        )
        for source in shape.sources
    )
    where = tuple(part for part in shape.where if part.sql not in moved)
    return replace(shape, sources=sources, where=where)


def _only_source(shape: QueryShape, part: Expr) -> str | None:
    """Return the source to which a condition can be moved; None: it stays."""
    if len(part.aliases) != 1:
        return None
    (alias,) = part.aliases
    order = [source.alias for source in shape.sources]
    return alias if keeps_filter(alias, order, shape.joins) else None
