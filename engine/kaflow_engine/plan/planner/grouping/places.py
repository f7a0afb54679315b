"""By which values of a row its task is chosen, and which groups are therefore in one task.

Rows whose grouping values contain those are where their groups are: no exchange is needed.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from kaflow_engine.duck.quoting import identifier
from kaflow_engine.flow.operators import Aggregate
from kaflow_engine.model.columns import Column
from kaflow_engine.operators.rows.layout import canonical, key_text, selected
from kaflow_engine.operators.rows.row_text import pack
from kaflow_engine.plan.planner.steps import KeyStep
from kaflow_engine.sql.shape import Expr

_INEXACT = ("FLOAT", "DOUBLE")
"""Types in which values of one group may have two texts."""

Parts = Sequence[tuple[str, str]]
"""SQL of values, and the types to which they are cast."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Places:
    """How the places of rows follow from their values."""

    values: tuple[tuple[frozenset[str], str], ...]
    """Of each value the SQL expressions that have it, and the type to which it is cast."""
    text: Callable[[Parts], str]
    """Makes SQL of the text that has the shard."""


def places_of_join(step: KeyStep) -> Places:
    """Return where the rows of a join are: by its key, which INNER sides have, too."""
    values: list[tuple[frozenset[str], str]] = []
    for number, (outer, kind) in enumerate(step.key):
        inner = {
            sorted(join.keys, key=lambda pair: pair.outer.sql)[number].inner.sql
            for join, _ in step.joins
            if join.kind == "INNER"
        }
        values.append((frozenset({outer, *inner}), kind))
    return Places(values=tuple(values), text=key_text)


def places_of_groups(
    aggregate: Aggregate, keys: Sequence[tuple[Column, Expr]], before: Places | None
) -> Places:
    """Return where the rows of groups are.

    Args:
        aggregate: What makes them.
        keys: Its grouping values, over the rows that it takes.
        before: Where those are, if it is by them that groups have their places.
    """
    names = {column.name: identifier(f"{aggregate.alias}.{column.name}") for column, _ in keys}
    if aggregate.shard is None or before is None:
        whole = ((frozenset({names[c.name]}), c.type) for c, _ in keys)
        return Places(values=tuple(whole), text=_packed)
    found = [(frozenset({names[c.name] for c in _having(keys, v)}), v[1]) for v in before.values]
    return replace(before, values=tuple(found))


def shard_in(places: Places, keys: Sequence[tuple[Column, Expr]]) -> str | None:
    """Return SQL over grouping values of the text by which the rows before have their places.

    None: the values do not have it, so that rows must travel.
    """
    chosen = [(_having(keys, value), value[1]) for value in places.values]
    if not chosen or not all(columns for columns, _ in chosen):
        return None
    return places.text([(selected(columns[0]), kind) for columns, kind in chosen])


def own_shard(keys: Sequence[tuple[Column, Expr]]) -> str:
    """Return what `shard_in` does where groups have their places by all that they group by."""
    return _packed([(selected(column), column.type) for column, _ in keys])


def _having(keys: Sequence[tuple[Column, Expr]], value: tuple[frozenset[str], str]) -> list[Column]:
    expressions, kind = value
    return [
        column
        for column, expr in keys
        if expr.sql in expressions and (column.type == kind or column.type not in _INEXACT)
    ]


def _packed(parts: Parts) -> str:
    return pack(canonical(sql, kind) for sql, kind in parts)
