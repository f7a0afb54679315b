"""Tables of two plans: which goes on with the rows of which, and which would lack rows."""

from collections.abc import Iterator

from kaflow_engine.flow.chains import chain_called, chain_of, chains, driving_of
from kaflow_engine.flow.edges import Rows
from kaflow_engine.flow.fingerprints import state_fingerprint
from kaflow_engine.flow.flow import Flow
from kaflow_engine.flow.graph import aggregates, operator_of, source_of
from kaflow_engine.flow.numbers import STATES, TABLES, table_state, with_states
from kaflow_engine.flow.operators import Aggregate, Decode, Project
from kaflow_engine.flow.tables import Materialize, TableJoin

Table = Materialize | TableJoin


def inherit_tables(old: Flow, new: Flow) -> Flow:
    """Return the new plan in which tables have the states of equal ones of the same chain.

    Others get numbers that no table of their chain has had.

    Args:
        old: The plan of the state.
        new: The plan that is to run, with the chains of the old one.
    """
    kept = {state for state in old.retired_states if state % STATES > TABLES}
    used = kept | {each.state for each in tables(old)}
    left = [*tables(old)]
    states: dict[str, int] = {}
    for each in tables(new):
        known = next((one for one in left if _equal(old, one, new, each)), None)
        if known is not None:
            left.remove(known)
            states[each.id] = known.state
    for chain in chains(new):
        numbers = [state % STATES for state in used if state // STATES == chain.number]
        last = max(numbers, default=TABLES) - TABLES
        added = [each for each in chain.tables if each.id not in states]
        for number, each in enumerate(added, last + 1):
            states[each.id] = table_state(chain.number, number)
    gone = {state for state in used if state // STATES not in new.retired} - {*states.values()}
    return with_states(new, states, retired=tuple(sorted({*new.retired_states, *gone})))


def tables(flow: Flow) -> tuple[Table, ...]:
    """Return the tables of a flow, and their joins."""
    return tuple(each for each in flow.operators if isinstance(each, Materialize | TableJoin))


def _equal(old: Flow, known: Table, new: Flow, each: Table) -> bool:
    same_chain = chain_of(old, known).number == chain_of(new, each).number
    return same_chain and state_fingerprint(old, known) == state_fingerprint(new, each)


def lacking(old: Flow, new: Flow) -> Iterator[str]:
    """Yield the tables, and groups of them, that would lack rows of records which were read before.

    Args:
        old: The plan of the state.
        new: The plan that is to run, as it inherits the state.
    """
    read = {topic.name for topic in old.sources}
    before = {each.state for each in (*tables(old), *aggregates(old))}
    grouping = (each for each in aggregates(new) if each.retracts)
    for each in (*tables(new), *grouping):
        lost = [topic for topic in _topics(new, each.id) if topic in read]
        if each.state not in before and lost:
            names = " and ".join(f"'{topic}'" for topic in lost)
            yield (
                f"{called(new, each)}: it is new or another one, and records of {names} were read "
                "before it was there"
            )


def tables_dropped(old: Flow, new: Flow) -> Iterator[str]:
    """Yield what becomes of the rows of tables that a plan does not have any more."""
    after = {each.state for each in tables(new)}
    for each in tables(old):
        if each.state not in after:
            yield f"{called(old, each)}: its rows are dropped"


def called(flow: Flow, table: Table | Aggregate) -> str:
    """Return what people call a table, or groups of its rows."""
    chain = chain_of(flow, table)
    whose = f" of {chain_called(flow, chain)}" if len(chains(flow)) > 1 else ""
    match table:
        case TableJoin():
            return f"join of tables '{table.id}'{whose}"
        case Materialize():
            return f"table '{table.id}'{whose}"
        case Aggregate():
            return f"aggregate '{table.id}'{whose}"


def _topics(flow: Flow, name: str) -> tuple[str, ...]:
    """Return the topics whose records make the rows of an operator."""
    match operator_of(flow, name):
        case TableJoin(left=left, right=right):
            return (*_topics(flow, left.input), *_topics(flow, right.input))
        case Decode(source=source):
            return (flow.sources[source].name,)
        case Materialize(rows=Rows(input=before)):
            return _topics(flow, before)
        case Aggregate(inputs=(entry, *_)) | Project(rows=Rows(input=entry)):
            return _topics(flow, entry)
        case other:
            return (source_of(flow, driving_of(flow, other)).name,)
