"""A plan over a state that another plan has made: each column stays where its values stand.

A row at rest is a list of texts in the order of the columns. A list that is shorter than today's
columns has NULL for the rest. So columns that were added come last, and the place of one that was
removed stays and holds NULL: no stored value has to be written again.
"""

from collections.abc import Iterator, Sequence
from dataclasses import replace

from kaflow_engine.flow.flow import Flow
from kaflow_engine.flow.graph import driving, joins
from kaflow_engine.flow.operators import Driving, KeyedJoin, Operator, SideParams, TakesRows
from kaflow_engine.model.columns import Column
from kaflow_engine.model.durations import format_duration
from kaflow_engine.operators.rows.layout import GONE, is_gone


def keeps_rows(plan: Flow, step: KeyedJoin) -> bool:
    """Tell whether rows of the driving side rest in a step: waiting, or to meet others later."""
    waits = step.require is not None or bool(step.inner)
    edge = driving(plan)
    return waits or bool(step.events) or edge.emission == "final" or edge.reemit


def inherit(old: Flow, new: Flow) -> Flow:
    """Return the new plan with the partitions of the old one, and stored columns where they are.

    Sides of a step that are new come behind those that have entries, too.

    Args:
        old: The plan of the state.
        new: The plan of the file; where its joins are others, only its partitions change.
    """
    new = replace(new, partitions=old.partitions)
    if not has_joins_of(old, new):
        return new
    befores = [step.before for step in joins(new)]
    sides = [step.sides for step in joins(new)]
    for n, known in enumerate(joins(old)):
        if keeps_rows(old, known):
            befores[n] = inherited(known.before, befores[n])
        sides[n] = _sides(known.sides, sides[n])
    if not befores:
        return new
    edge = driving(new)
    head = f"{edge.alias}."
    columns = tuple(Column(c.name.removeprefix(head), c.type) for c in befores[0])
    layouts = {
        step.id: replace(step, before=before, sides=some)
        for step, before, some in zip(joins(new), befores, sides, strict=True)
    }
    operators = (layouts.get(each.id, each) for each in new.operators)
    edge = replace(edge, columns=columns)
    return replace(new, operators=tuple(_driven_by(edge, each) for each in operators))


def _driven_by(edge: Driving, operator: Operator) -> Operator:
    if isinstance(operator, TakesRows) and isinstance(operator.rows, Driving):
        return replace(operator, rows=edge)
    return operator


def inherited(old: Sequence[Column], new: Sequence[Column]) -> tuple[Column, ...]:
    """Return columns in the order in which values of others are stored.

    >>> [c.name for c in inherited([Column("a", "DATE"), Column("c", "DATE")], [Column("b", "DATE"),
    ... Column("c", "DATE")])]
    ['$gone.0', 'c', 'b']
    """
    rest = {column.name: column for column in new}
    kept = [
        column if is_gone(column) else rest.pop(column.name, Column(f"{GONE}{i}", "VARCHAR"))
        for i, column in enumerate(old)
    ]
    return (*kept, *rest.values())


def migrations(old: Flow, new: Flow) -> tuple[str, ...]:
    """Return what is said of stored values that the new plan reads otherwise than the old one.

    Args:
        old: The plan of the state.
        new: The plan that goes on with it, as it inherits the state.
    """
    found: list[str] = []
    for before, step in zip(joins(old), joins(new), strict=False):
        if keeps_rows(old, before):
            found += _read_otherwise("rows that wait", before.before, step.before)
            found += _lasting("rows that wait", driving(old).ttl, driving(new).ttl)
        for known, side in zip(before.sides, step.sides, strict=False):
            kept = "entries" if side.role == "dimension" else "records"
            owner = f"{kept} of {side.role} '{side.alias}'"
            found += _read_otherwise(owner, known.columns, side.columns)
            if side.role == "event":
                found += _lasting(owner, known.ttl, side.ttl)
    if has_joins_of(old, new):
        known = {side.alias for step in joins(old) for side in step.sides}
        added = [side for step in joins(new) for side in step.sides if side.alias not in known]
        found += [f"{side.role} '{side.alias}' is loaded to its end first" for side in added]
    return tuple(dict.fromkeys(found))


def _read_otherwise(whose: str, old: Sequence[Column], new: Sequence[Column]) -> Iterator[str]:
    until = ", until one replaces them" if whose.startswith("entries") else ""
    for column in new[len(old) :]:
        yield f"{whose} have NULL for column '{column.name}' if they are from before{until}"
    for before, now in zip(old, new, strict=False):
        if is_gone(now) and not is_gone(before):
            yield f"{whose} keep column '{before.name}' no more"
        elif now.type != before.type:
            yield f"{whose} from before have '{now.name}' as {before.type}, read as {now.type}"


def _lasting(whose: str, old: int, new: int) -> Iterator[str]:
    if old != new:
        yield f"{whose} that have not expired yet are kept for {format_duration(new)} in all"


def has_joins_of(old: Flow, new: Flow) -> bool:
    """Tell whether each join of the old plan is in the same step of the new one."""
    if driving(old).alias != driving(new).alias or len(joins(old)) > len(joins(new)):
        return False
    return all(
        {(side.alias, side.role) for side in known.sides}
        <= {(side.alias, side.role) for side in step.sides}
        for known, step in zip(joins(old), joins(new), strict=False)
    )


def _sides(old: Sequence[SideParams], new: Sequence[SideParams]) -> tuple[SideParams, ...]:
    rest = {side.alias: side for side in new}
    kept = [(known, rest.pop(known.alias)) for known in old]
    return (
        *(replace(side, columns=inherited(known.columns, side.columns)) for known, side in kept),
        *rest.values(),
    )
