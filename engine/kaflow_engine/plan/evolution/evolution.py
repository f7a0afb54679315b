"""A plan over a state that another plan has made: each column stays where its values stand.

A row at rest is a list of texts in the order of the columns. A list that is shorter than today's
columns has NULL for the rest. So columns that were added come last, and the place of one that was
removed stays and holds NULL: no stored value has to be written again.
"""

from collections.abc import Iterator, Sequence
from dataclasses import replace

from kaflow_engine.flow.chains.chain import Chain, chains, driving_of, rows_rest
from kaflow_engine.flow.chains.names import chain_called
from kaflow_engine.flow.edges import Driving, SideParams
from kaflow_engine.flow.flow import Flow
from kaflow_engine.flow.graph import operator_of, source_of
from kaflow_engine.flow.numbers import renumbered, used_numbers
from kaflow_engine.flow.operators import Decode, KeyedJoin, Operator, TakesRows
from kaflow_engine.model.columns import Column
from kaflow_engine.model.durations import format_duration
from kaflow_engine.model.record_columns import is_key_bytes
from kaflow_engine.operators.rows.layout import is_gone
from kaflow_engine.plan.evolution.aggregates import begun_and_dropped, inherit_aggregates
from kaflow_engine.plan.evolution.begun import beginning_with, with_beginnings
from kaflow_engine.plan.evolution.clocks import inherit_clocks
from kaflow_engine.plan.evolution.layout import inherited
from kaflow_engine.plan.evolution.numbering import numbers_of
from kaflow_engine.plan.evolution.tables import inherit_tables, tables_dropped
from kaflow_engine.plan.evolution.timed import inherit_timed, runs_dropped


def keeps_rows(plan: Flow, step: KeyedJoin) -> bool:
    """Tell whether rows of the driving side rest in a step: waiting, or to meet others later."""
    return rows_rest(driving_of(plan, step), step)


def inherit(old: Flow, new: Flow) -> Flow:
    """Return the new plan with the partitions and chains of the old one, and columns where they
    are stored.

    A chain that goes on has the number of the old one; numbers of chains that are gone are never
    used again. Sides of a step that are new come behind those that have entries.

    Args:
        old: The plan of the state.
        new: The plan of the file; chains whose joins are others keep their columns as they are.
    """
    new = inherit_clocks(old, new)
    new = renumbered(new, numbers_of(old, new, has_joins_of))
    gone = used_numbers(old) - {chain.number for chain in chains(new)}
    new = replace(new, partitions=old.partitions, retired=tuple(sorted(gone)))
    for known, chain in pairs_of(old, new):
        if has_joins_of(known, chain) and chain.joins:
            new = _laid_out(old, known, new, chain)
    tables = inherit_tables(old, inherit_aggregates(old, new))
    return with_beginnings(old, inherit_timed(old, tables))


def pairs_of(old: Flow, new: Flow) -> tuple[tuple[Chain, Chain], ...]:
    """Return the chains that both plans have.

    Args:
        old: The plan of the state.
        new: The plan that is to run, as it inherits the state.
    """
    known = {chain.number: chain for chain in chains(old)}
    found = (chain for chain in chains(new) if chain.number in known)
    return tuple((known[chain.number], chain) for chain in found)


def _laid_out(old: Flow, known: Chain, new: Flow, chain: Chain) -> Flow:
    """Return the new plan with the columns of a chain where they are stored."""
    befores = [step.before for step in chain.joins]
    sides = [step.sides for step in chain.joins]
    for n, step in enumerate(known.joins):
        if keeps_rows(old, step):
            befores[n] = inherited(step.before, befores[n])
        sides[n] = _sides(step.sides, sides[n])
    head = f"{chain.driving.alias}."
    columns = tuple(Column(c.name.removeprefix(head), c.type) for c in befores[0])
    edge = replace(chain.driving, columns=columns)
    layouts = {
        step.id: replace(step, before=before, sides=some)
        for step, before, some in zip(chain.joins, befores, sides, strict=True)
    }
    operators = (layouts.get(each.id, each) for each in new.operators)
    return replace(
        new, operators=tuple(_driven_by(chain.driving, edge, each) for each in operators)
    )


def _driven_by(before: Driving, now: Driving, operator: Operator) -> Operator:
    if isinstance(operator, TakesRows) and operator.rows == before:
        return replace(operator, rows=now)
    return operator


def migrations(old: Flow, new: Flow) -> tuple[str, ...]:
    """Return what is said of stored values that the new plan reads otherwise than the old one.

    Args:
        old: The plan of the state.
        new: The plan that goes on with it, as it inherits the state.
    """
    pairs = pairs_of(old, new)
    alone = len(chains(old)) == len(chains(new)) == 1
    found: list[str] = []
    for known, chain in pairs:
        whose = "" if alone else f"{chain_called(new, chain)}: "
        found += [whose + line for line in _read_by(old, known, new, chain)]
    stays = {chain.number for chain, _ in pairs}
    for chain in chains(old):
        if chain.number not in stays and chain.joins:
            found.append(f"{chain_called(old, chain)}: {_dropped(old, chain)}")
    for chain in chains(new):
        if chain.number not in stays:
            found += [f"{chain_called(new, chain)}: {line}" for line in _begins(old, new, chain)]
    found += [*begun_and_dropped(old, new), *tables_dropped(old, new), *runs_dropped(old, new)]
    found += beginning_with(old, new)
    return tuple(dict.fromkeys(found))


def _read_by(old: Flow, known: Chain, new: Flow, chain: Chain) -> Iterator[str]:
    """Yield what is read otherwise by a chain that goes on."""
    for before, step in zip(known.joins, chain.joins, strict=False):
        if keeps_rows(old, before):
            yield from _read_otherwise("rows that wait", before.before, step.before)
            yield from _lasting("rows that wait", known.driving.ttl, chain.driving.ttl)
        for there, side in zip(before.sides, step.sides, strict=False):
            kept = "entries" if side.role == "dimension" else "records"
            owner = f"{kept} of {side.role} '{side.alias}'"
            yield from _read_otherwise(owner, there.columns, side.columns)
            if side.role == "event":
                yield from _lasting(owner, there.ttl, side.ttl)
    if has_joins_of(known, chain):
        aliases = {side.alias for step in known.joins for side in step.sides}
        for side in (side for step in chain.joins for side in step.sides):
            if side.alias not in aliases and not is_table(new, side):
                yield f"{side.role} '{side.alias}' is loaded to its end first"


def is_table(flow: Flow, side: SideParams) -> bool:
    """Tell whether a side looks up rows of a table that the flow makes, and not of a topic."""
    return not isinstance(operator_of(flow, side.input), Decode)


def _dropped(old: Flow, chain: Chain) -> str:
    rests = any(keeps_rows(old, step) for step in chain.joins)
    return f"what its joins keep is dropped{', and the rows that wait' if rests else ''}"


def _begins(old: Flow, new: Flow, chain: Chain) -> Iterator[str]:
    """Yield where a chain begins that the state does not have."""
    read = {topic.name for topic in old.sources}
    topic = source_of(new, chain.driving).name
    if topic in read:
        yield f"begins with the next records of topic '{topic}', which the pipeline reads already"
    else:
        yield f"begins on topic '{topic}' where kafka.consumer.autoOffsetReset says"
    sides = [side for step in chain.joins for side in step.sides]
    events = [f"'{side.alias}'" for side in sides if side.role == "event"]
    if events:
        yield f"nothing is kept of {', '.join(events)} at first"
    for side in sides:
        if side.role == "dimension" and not is_table(new, side):
            yield f"dimension '{side.alias}' is loaded to its end first"


def _read_otherwise(whose: str, old: Sequence[Column], new: Sequence[Column]) -> Iterator[str]:
    until = ", until one replaces them" if whose.startswith("entries") else ""
    for column in new[len(old) :]:
        if is_key_bytes(column.name):
            yield f"{whose} leave without a key if they are from before"
            continue
        yield f"{whose} have NULL for column '{column.name}' if they are from before{until}"
    for before, now in zip(old, new, strict=False):
        if is_gone(now) and not is_gone(before):
            yield f"{whose} keep column '{before.name}' no more"
        elif now.type != before.type:
            yield f"{whose} from before have '{now.name}' as {before.type}, read as {now.type}"


def _lasting(whose: str, old: int, new: int) -> Iterator[str]:
    if old != new:
        yield f"{whose} that have not expired yet are kept for {format_duration(new)} in all"


def has_joins_of(old: Chain, new: Chain) -> bool:
    """Tell whether each join of the old chain is in the same step of the new one."""
    if old.driving.alias != new.driving.alias or len(old.joins) > len(new.joins):
        return False
    return all(
        {(side.alias, side.role) for side in known.sides}
        <= {(side.alias, side.role) for side in step.sides}
        for known, step in zip(old.joins, new.joins, strict=False)
    )


def _sides(old: Sequence[SideParams], new: Sequence[SideParams]) -> tuple[SideParams, ...]:
    rest = {side.alias: side for side in new}
    kept = [(known, rest.pop(known.alias)) for known in old]
    return (
        *(replace(side, columns=inherited(known.columns, side.columns)) for known, side in kept),
        *rest.values(),
    )
