"""What chains are numbered for: the ids of their operators, and the names of their states."""

from collections.abc import Mapping
from dataclasses import replace
from typing import assert_never

from kaflow_engine.flow.chains.chain import STATES, chains, driving_of
from kaflow_engine.flow.edges import Driving, Rows
from kaflow_engine.flow.flow import Flow
from kaflow_engine.flow.operators import (
    Aggregate,
    Decode,
    KeepsState,
    KeyedJoin,
    Ledger,
    Operator,
    Project,
)
from kaflow_engine.flow.sinks import Sink
from kaflow_engine.flow.tables import Append, Materialize, TableJoin
from kaflow_engine.flow.timed import Runs, Throttle
from kaflow_engine.flow.transforms import Transform


def state_in(chain: int, place: int) -> int:
    """Return the name of a state.

    Args:
        chain: The number of its chain.
        place: That of its operator in the chain, from 1.
    """
    return chain * STATES + place


AGGREGATES = 100
"""States of aggregates are numbered behind this place in their chain."""


def aggregate_state(chain: int, number: int) -> int:
    """Return the name of the state of an aggregate, which are numbered from 1 in each chain."""
    return state_in(chain, AGGREGATES + number)


TABLES = 200
"""States of tables and their joins are numbered behind this place in their chain."""


def table_state(chain: int, number: int) -> int:
    """Return the name of the state of a table, which are numbered from 1 in each chain."""
    return state_in(chain, TABLES + number)


TIMED = 300
"""States of what follows batch time are numbered behind this place in their chain."""


RUNS = 100
"""Those of runs are numbered behind this place among them."""


def timed_state(chain: int, number: int) -> int:
    """Return the name of the state of what follows batch time, numbered from 1 in each chain."""
    return state_in(chain, TIMED + number)


def join_id(chain: int, place: int) -> str:
    """Return the id of a join.

    >>> join_id(0, 2), join_id(3, 2)
    ('join:2', 'join:3.2')
    """
    return f"join:{chain}.{place}" if chain else f"join:{place}"


def ledger_id(chain: int) -> str:
    """Return the id of the ledger of a chain.

    >>> ledger_id(0), ledger_id(3)
    ('ledger', 'ledger:3')
    """
    return f"ledger:{chain}" if chain else "ledger"


def renumbered(flow: Flow, numbers: Mapping[int, int]) -> Flow:
    """Return a flow whose chains have other numbers.

    Args:
        flow: The flow.
        numbers: Number to the one that stands in its place; a chain that is not named keeps its
            own.
    """
    if all(number == now for number, now in numbers.items()):
        return flow
    ids = {each.id: _id(flow, each, numbers) for each in flow.operators}
    return replace(
        flow,
        operators=tuple(_operator(flow, each, numbers, ids) for each in flow.operators),
        sinks=tuple(_sink(each, ids) for each in flow.sinks),
    )


def with_states(flow: Flow, states: Mapping[str, int], retired: tuple[int, ...]) -> Flow:
    """Return a flow whose aggregates, tables, throttles and runs keep other states.

    Args:
        flow: The flow.
        states: By the id of the operator.
        retired: Those that no operator may have again.
    """
    operators = tuple(
        replace(each, state=states.get(each.id, each.state))
        if isinstance(each, Aggregate | Materialize | TableJoin | Throttle | Runs)
        else each
        for each in flow.operators
    )
    return replace(flow, operators=operators, retired_states=retired)


def used_numbers(flow: Flow) -> frozenset[int]:
    """Return the numbers that chains have or once had."""
    return frozenset({chain.number for chain in chains(flow)} | {*flow.retired})


def _now(flow: Flow, operator: KeepsState, numbers: Mapping[int, int]) -> int:
    number = driving_of(flow, operator).chain
    return numbers.get(number, number)


def _id(flow: Flow, operator: Operator, numbers: Mapping[int, int]) -> str:
    match operator:
        case Decode() | Project() | Aggregate() | Materialize() | TableJoin():
            return operator.id
        case Throttle() | Runs() | Append() | Transform():
            return operator.id
        case KeyedJoin(state=state):
            return join_id(_now(flow, operator, numbers), state % STATES)
        case Ledger():
            return ledger_id(_now(flow, operator, numbers))
        case _:
            assert_never(operator)


def _operator(
    flow: Flow, operator: Operator, numbers: Mapping[int, int], ids: Mapping[str, str]
) -> Operator:
    match operator:
        case Decode():
            return operator
        case Project(rows=rows):
            return replace(operator, rows=_rows(rows, numbers, ids))
        case KeyedJoin(rows=rows, state=state, chain=number):
            return replace(
                operator,
                id=ids[operator.id],
                state=state_in(_now(flow, operator, numbers), state % STATES),
                rows=_rows(rows, numbers, ids),
                chain=None if number is None else numbers.get(number, number),
            )
        case Ledger(state=state, inputs=inputs):
            return replace(
                operator,
                id=ids[operator.id],
                state=state_in(_now(flow, operator, numbers), state % STATES),
                inputs=tuple(ids[name] for name in inputs),
            )
        case (
            Aggregate(state=state, inputs=inputs, chain=number)
            | Runs(state=state, inputs=inputs, chain=number)
        ):
            return replace(
                operator,
                state=state_in(_now(flow, operator, numbers), state % STATES),
                inputs=tuple(ids[name] for name in inputs),
                chain=None if number is None else numbers.get(number, number),
            )
        case Throttle(state=state, inputs=inputs):
            return replace(
                operator,
                state=state_in(_now(flow, operator, numbers), state % STATES),
                inputs=tuple(ids[name] for name in inputs),
            )
        case Append(inputs=inputs) | Transform(inputs=inputs):
            return replace(operator, inputs=tuple(ids[name] for name in inputs))
        case Materialize(state=state, rows=rows):
            return replace(
                operator,
                state=state_in(_now(flow, operator, numbers), state % STATES),
                rows=_rows(rows, numbers, ids),
            )
        case TableJoin(state=state, left=left, right=right, chain=number):
            return replace(
                operator,
                state=state_in(_now(flow, operator, numbers), state % STATES),
                chain=None if number is None else numbers.get(number, number),
                left=replace(left, input=ids[left.input]),
                right=replace(right, input=ids[right.input]),
            )
        case _:
            assert_never(operator)


def _rows(
    rows: Driving | Rows, numbers: Mapping[int, int], ids: Mapping[str, str]
) -> Driving | Rows:
    match rows:
        case Driving(chain=number):
            return replace(rows, chain=numbers.get(number, number))
        case Rows(input=name):
            return replace(rows, input=ids[name])
        case _:
            assert_never(rows)


def _sink(sink: Sink, ids: Mapping[str, str]) -> Sink:
    return replace(sink, inputs=tuple(ids[name] for name in sink.inputs))
