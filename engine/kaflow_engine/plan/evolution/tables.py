"""Tables of two plans: which goes on with the rows of which."""

from collections.abc import Iterator
from dataclasses import replace
from typing import Any, assert_never

from kaflow_engine.flow.chains.chain import chain_of, chains
from kaflow_engine.flow.chains.names import chain_called
from kaflow_engine.flow.edges import Driving, Rows
from kaflow_engine.flow.fingerprints import state_fingerprint
from kaflow_engine.flow.flow import Flow
from kaflow_engine.flow.graph import operator_of, source_of
from kaflow_engine.flow.numbers import STATES, TABLES, TIMED, table_state, with_states
from kaflow_engine.flow.operators import Aggregate, Operator
from kaflow_engine.flow.tables import Materialize, TableJoin
from kaflow_engine.model.columns import Column
from kaflow_engine.operators.rows.layout import is_gone
from kaflow_engine.plan.evolution.layout import inherited

Table = Materialize | TableJoin


def inherit_tables(old: Flow, new: Flow) -> Flow:
    """Return the new plan in which tables have the states, and the columns in the order, of equal
    ones of the same chain.

    Others get numbers that no table of their chain has had.

    Args:
        old: The plan of the state.
        new: The plan that is to run, with the chains of the old one.
    """
    kept = {state for state in old.retired_states if TABLES < state % STATES <= TIMED}
    used = kept | {each.state for each in tables(old)}
    left = [*tables(old)]
    states: dict[str, int] = {}
    layouts: dict[str, Operator] = {}
    for each in tables(new):
        known = next((one for one in left if _equal(old, one, new, each)), None)
        if known is not None:
            left.remove(known)
            states[each.id] = known.state
            layouts[each.id] = _laid_out(known, each)
    for chain in chains(new):
        numbers = [state % STATES for state in used if state // STATES == chain.number]
        last = max(numbers, default=TABLES) - TABLES
        added = [each for each in chain.tables if each.id not in states]
        for number, each in enumerate(added, last + 1):
            states[each.id] = table_state(chain.number, number)
    gone = {state for state in used if state // STATES not in new.retired} - {*states.values()}
    new = replace(new, operators=tuple(layouts.get(each.id, each) for each in new.operators))
    return with_states(new, states, retired=tuple(sorted({*new.retired_states, *gone})))


def tables(flow: Flow) -> tuple[Table, ...]:
    """Return the tables of a flow, and their joins."""
    return tuple(each for each in flow.operators if isinstance(each, Materialize | TableJoin))


def _equal(old: Flow, known: Table, new: Flow, each: Table) -> bool:
    """Tell whether a table goes on with the rows of another one: of its columns it may need
    fewer."""
    same_chain = chain_of(old, known).number == chain_of(new, each).number
    return (
        same_chain
        and _kept(old, known) == _kept(new, each)
        and {c for c in _columns(each) if not is_gone(c)} <= {*_columns(known)}
    )


def _kept(flow: Flow, operator: Operator) -> Any:
    """Return what the rows of a table depend on, without their columns."""
    match operator:
        case Materialize():
            own = replace(operator, id="", state=0, columns=(), each=False)
            match operator.rows:
                case Driving() as edge:
                    topic = source_of(flow, edge)
                    rows: Any = [topic.name, topic.event_time, edge.alias, edge.filter]
                case Rows(input=name):
                    rows = _kept(flow, operator_of(flow, name))
                case _:
                    assert_never(operator.rows)
            return replace(own, rows=Rows(input="", key=None)), rows
        case TableJoin(left=left, right=right):
            sides = [replace(side, input="", columns=()) for side in (left, right)]
            own = replace(
                operator,
                id="",
                state=0,
                each=False,
                chain=None,
                left=sides[0],
                right=sides[1],
            )
            return own, [_kept(flow, operator_of(flow, side.input)) for side in (left, right)]
        case _:
            return state_fingerprint(flow, operator)


def _columns(table: Table) -> tuple[Column, ...]:
    match table:
        case Materialize(columns=columns):
            return columns
        case TableJoin(left=left, right=right):
            return (*left.columns, *right.columns)
        case _:
            assert_never(table)


def _laid_out(known: Table, each: Table) -> Table:
    """Return a table with its columns where they are stored."""
    match known, each:
        case Materialize(), Materialize():
            return replace(each, columns=inherited(known.columns, each.columns))
        case TableJoin(), TableJoin():
            sides = zip(known.sides, each.sides, strict=True)
            left, right = (
                replace(side, columns=inherited(before.columns, side.columns))
                for before, side in sides
            )
            return replace(each, left=left, right=right)
        case _:
            raise AssertionError("a table and a join of tables are not alike")


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
