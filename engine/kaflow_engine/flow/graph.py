"""What the edges of a flow mean: who reads whom, behind which exchange, under which state."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import assert_never

from kaflow_engine.flow.decodes import decoded_by
from kaflow_engine.flow.edges import Driving, Rows, SideParams
from kaflow_engine.flow.flow import Flow
from kaflow_engine.flow.operators import (
    Aggregate,
    Decode,
    Gathers,
    KeepsState,
    KeyedJoin,
    Ledger,
    Operator,
    Project,
    TakesRows,
)
from kaflow_engine.flow.sinks import ConnectorSink, Sink, TableSink, TopicSink, value_columns
from kaflow_engine.flow.sources import TopicParams
from kaflow_engine.flow.tables import Append, Materialize, TableJoin
from kaflow_engine.flow.timed import Runs, Throttle
from kaflow_engine.flow.transforms import Transform
from kaflow_engine.model.columns import Column


def inputs_of(node: Operator | Sink) -> tuple[str, ...]:
    """Return the ids of the operators whose rows a node takes."""
    match node:
        case Decode():
            return ()
        case KeyedJoin(rows=rows, sides=sides):
            return (rows.input, *(side.input for side in sides))
        case Project(rows=rows) | Materialize(rows=rows):
            return (rows.input,)
        case TableJoin(left=left, right=right):
            return (left.input, right.input)
        case (
            Ledger(inputs=inputs)
            | Aggregate(inputs=inputs)
            | Append(inputs=inputs)
            | Throttle(inputs=inputs)
            | Runs(inputs=inputs)
            | Transform(inputs=inputs)
            | TopicSink(inputs=inputs)
            | TableSink(inputs=inputs)
            | ConnectorSink(inputs=inputs)
        ):
            return inputs
        case _:
            assert_never(node)


def has_exchange(node: Operator | Sink) -> bool:
    """Tell whether rows travel to a node by their key, rather than stay in the task."""
    match node:
        case Decode() | Project() | Append() | Transform():
            return False
        case KeyedJoin() | Ledger() | Materialize() | TableJoin():
            return True
        case Throttle() | Runs():
            return True
        case TopicSink() | TableSink() | ConnectorSink() | Aggregate():
            return node.exchange
        case _:
            assert_never(node)


def levels(flow: Flow) -> dict[str, int]:
    """Return, by id, how many exchanges rows pass before a node; a task runs those of one level.

    All sinks are at the last one, because a task delivers once.
    """
    found: dict[str, int] = {}
    for node in (*flow.operators, *flow.sinks):
        before = max((found[name] for name in inputs_of(node)), default=0)
        found[node.id] = before + int(has_exchange(node))
    last = max(found.values())
    return {**found, **{sink.id: last for sink in flow.sinks}}


def level_of(flow: Flow, node: Operator | Sink) -> int:
    """Return how many exchanges rows pass before a node."""
    return levels(flow)[node.id]


def last_level(flow: Flow) -> int:
    """Return the level that delivers."""
    return max(levels(flow).values())


def target_of(flow: Flow, node: Operator | Sink) -> int:
    """Return the number by which rows that travel name where they go: operators, then sinks."""
    return (*flow.operators, *flow.sinks).index(node)


def operator_of(flow: Flow, name: str) -> Operator:
    """Return the operator of an id."""
    return next(operator for operator in flow.operators if operator.id == name)


def source_of(flow: Flow, edge: Driving | SideParams) -> TopicParams:
    """Return the topic whose records come along an edge, by the clock of the edge."""
    found = operator_of(flow, edge.input)
    assert isinstance(found, Decode)
    return decoded_by(flow, found)


def side_name(flow: Flow, side: SideParams) -> str:
    """Return what a joined side reads: the name of a topic, or the id of what makes its rows."""
    found = operator_of(flow, side.input)
    if isinstance(found, Materialize) and isinstance(found.rows, Driving):
        found = operator_of(flow, found.rows.input)
    return flow.sources[found.source].name if isinstance(found, Decode) else found.id


def joins(flow: Flow) -> tuple[KeyedJoin, ...]:
    """Return the keyed joins, each behind those whose rows it takes."""
    return tuple(each for each in flow.operators if isinstance(each, KeyedJoin))


def joins_before(flow: Flow, join: KeyedJoin) -> tuple[KeyedJoin, ...]:
    """Return the joins that a row has passed when it arrives at one, the first one first."""
    match join.rows:
        case Driving():
            return ()
        case Rows(input=name):
            before = operator_of(flow, name)
            is_joined = isinstance(before, KeyedJoin)
            return (*joins_before(flow, before), before) if is_joined else ()
        case _:
            assert_never(join.rows)


def readers_of(flow: Flow, name: str) -> tuple[TakesRows, ...]:
    """Return the operators that take the rows which an operator makes; each takes all of them."""
    return tuple(
        each for each in flow.operators if isinstance(each, TakesRows) and each.rows.input == name
    )


def sides_of(flow: Flow, name: str) -> tuple[tuple[KeyedJoin, int], ...]:
    """Return the joined sides whose records or rows an operator makes: a join, and which side."""
    return tuple(
        (join, i) for join in joins(flow) for i, side in enumerate(join.sides) if side.input == name
    )


def table_sides_of(flow: Flow, name: str) -> tuple[tuple[TableJoin, int], ...]:
    """Return the joins of tables that take the changes of an operator: a join, and which side."""
    return tuple(
        (join, i)
        for join in flow.operators
        if isinstance(join, TableJoin)
        for i, side in enumerate(join.sides)
        if side.input == name
    )


def projections(flow: Flow) -> tuple[Project, ...]:
    """Return the projections, in the order of the outputs."""
    return tuple(each for each in flow.operators if isinstance(each, Project))


def taker_of(flow: Flow, project: Project) -> Sink | Gathers:
    """Return the sink, or what gathers rows, that takes the rows of a projection."""
    nodes = (*flow.sinks, *(each for each in flow.operators if isinstance(each, Gathers)))
    return next(node for node in nodes if project.id in node.inputs)


def aggregates(flow: Flow) -> tuple[Aggregate, ...]:
    """Return the aggregates, each behind those whose rows it takes."""
    return tuple(each for each in flow.operators if isinstance(each, Aggregate))


def groups_here(flow: Flow, join: KeyedJoin) -> bool:
    """Tell whether an aggregate takes the rows of a join in its task."""
    takers = (taker_of(flow, e) for e in readers_of(flow, join.id) if isinstance(e, Project))
    return any(isinstance(taker, Aggregate) and not taker.exchange for taker in takers)


def gathered_before(flow: Flow, project: Project) -> tuple[Gathers, ...]:
    """Return what gathered the rows that arrive at a projection, the first one first."""
    match project.rows:
        case Driving():
            return ()
        case Rows(input=name):
            before = operator_of(flow, name)
        case _:
            assert_never(project.rows)
    return gathered_to(flow, before) if isinstance(before, Gathers) else ()


def gathered_to(flow: Flow, last: Gathers) -> tuple[Gathers, ...]:
    """Return what gathers rows behind those that its rows have passed, the first one first."""
    entry = operator_of(flow, last.inputs[0])
    assert isinstance(entry, Project)
    return (*gathered_before(flow, entry), last)


def throttle_of(flow: Flow, sink: Sink) -> Throttle | None:
    """Return what holds changes back on their way to a sink; None: nothing does."""
    return next((each for each in throttles(flow) if each.id in sink.inputs), None)


def throttles(flow: Flow) -> tuple[Throttle, ...]:
    """Return what holds changes back."""
    return tuple(each for each in flow.operators if isinstance(each, Throttle))


def throttled_readers(flow: Flow, name: str) -> tuple[Project, ...]:
    """Return the projections of an operator's rows whose changes are held back."""
    held = {project for throttle in throttles(flow) for project in throttle.inputs}
    return tuple(e for e in projections(flow) if e.rows.input == name and e.id in held)


def projects_of(flow: Flow, sink: Sink) -> tuple[Project, ...]:
    """Return the projections whose rows a sink takes: one for each branch of a union, in their
    order."""
    return _projections_in(flow, sink.inputs)


def entries_of(flow: Flow, gathers: Gathers) -> tuple[Project, ...]:
    """Return the projections whose rows an operator gathers: one for each branch of a union."""
    return _projections_in(flow, gathers.inputs)


def _projections_in(flow: Flow, names: Sequence[str]) -> tuple[Project, ...]:
    found = {each.id: each for each in projections(flow)}
    return tuple(found[name] for name in names if name in found)


def columns_of(flow: Flow, sink: Sink) -> tuple[Column, ...]:
    """Return the columns of what a sink writes; those of all branches are the same."""
    return value_columns(sink, [column for column, _ in projects_of(flow, sink)[0].columns])


def topic_sinks(flow: Flow) -> tuple[TopicSink, ...]:
    """Return the topics that are written."""
    return tuple(sink for sink in flow.sinks if isinstance(sink, TopicSink))


def table_sinks(flow: Flow) -> tuple[TableSink, ...]:
    """Return the tables that are written."""
    return tuple(sink for sink in flow.sinks if isinstance(sink, TableSink))


def gathered_for(flow: Flow) -> int:
    """Return how many milliseconds rows gather before a batch: as the most impatient of the sinks
    says that gather them."""
    intervals = [sink.table.interval for sink in table_sinks(flow)]
    for sink in flow.sinks:
        said = dict(sink.settings).get("interval") if isinstance(sink, ConnectorSink) else None
        if isinstance(said, int):
            intervals.append(said)
    return min(intervals, default=0)


def with_avro_ids(flow: Flow, ids: Mapping[str, int], keys: Mapping[str, int]) -> Flow:
    """Return a flow whose topics have the schemas of values and keys under ids, by sink."""
    sinks = (
        replace(sink, avro_id=ids.get(sink.id), key_schema_id=keys.get(sink.id))
        if isinstance(sink, TopicSink)
        else sink
        for sink in flow.sinks
    )
    return replace(flow, sinks=tuple(sinks))


def state_name(operator: Operator) -> int | None:
    """Return what the state of an operator is called; None of one that keeps nothing."""
    match operator:
        case (
            KeyedJoin(state=state)
            | Ledger(state=state)
            | Aggregate(state=state)
            | Materialize(state=state)
            | TableJoin(state=state)
            | Throttle(state=state)
            | Runs(state=state)
        ):
            return state
        case Decode() | Project() | Append() | Transform():
            return None
        case _:
            assert_never(operator)


def state_names(flow: Flow) -> tuple[int, ...]:
    """Return the names of all states."""
    return tuple(name for each in flow.operators if (name := state_name(each)) is not None)


def operator_of_state(flow: Flow, state: int) -> KeepsState:
    """Return the operator that keeps a state."""
    return next(
        each for each in flow.operators if isinstance(each, KeepsState) and each.state == state
    )
