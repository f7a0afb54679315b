"""What a plan has more than the one before, over tables that have rows: it begins with them."""

from collections.abc import Iterator, Mapping
from dataclasses import replace

from kaflow_engine.flow.beginnings import Reading, readings, tables_of, twins
from kaflow_engine.flow.edges import Driving
from kaflow_engine.flow.flow import Beginning, Flow
from kaflow_engine.flow.graph import (
    aggregates,
    inputs_of,
    joins,
    operator_of,
    projects_of,
    source_of,
    state_names,
)
from kaflow_engine.flow.operators import Aggregate, KeyedJoin, MakesChanges
from kaflow_engine.flow.sinks import ConnectorSink, Sink, TableSink, TopicSink
from kaflow_engine.flow.tables import Append, Materialize, TableJoin
from kaflow_engine.plan.evolution.aggregates import called as group_called
from kaflow_engine.plan.evolution.tables import called as table_called
from kaflow_engine.plan.evolution.tables import tables

New = Materialize | TableJoin | Aggregate


def with_beginnings(old: Flow, new: Flow) -> Flow:
    """Return the new plan with what has begun before, and what its first batch begins with.

    Args:
        old: The plan of the state.
        new: The plan that is to run, with the states of the old one.
    """
    every = _beginnings(new)
    found = [each for each in old.begins if each in every]
    copied = {every[each].reader.id for each in found if _is_copy(every[each])}
    for each, reading in every.items():
        if not _is_added(old, new, reading) or reading.reader.id in copied:
            continue
        if _is_copy(reading):
            copied.add(reading.reader.id)
        found.append(each)
    return replace(new, begins=tuple(dict.fromkeys(found)))


def _beginnings(flow: Flow) -> Mapping[Beginning, Reading]:
    return {each.beginning: each for each in (*readings(flow), *twins(flow))}


def _is_copy(reading: Reading) -> bool:
    """Tell whether a table of a topic takes the rows of another one."""
    return isinstance(reading.reader, Materialize) and isinstance(reading.reader.rows, Driving)


def _is_added(old: Flow, new: Flow, reading: Reading) -> bool:
    """Tell whether a table was there, and what reads it was not."""
    if reading.table.state not in state_names(old):
        return False
    match reading.reader:
        case TopicSink() | TableSink() | ConnectorSink() as sink:
            known = [each for each in old.sinks if each.target == sink.target]
            is_branch = len(projects_of(new, sink)) > 1
            return not known or (is_branch and not _is_written(old, known[0], reading.table))
        case KeyedJoin(state=state, sides=sides):
            known = next((join for join in joins(old) if join.state == state), None)
            assert reading.side is not None
            alias = sides[reading.side].alias
            return known is None or all(side.alias != alias for side in known.sides)
        case Materialize(rows=Driving() as edge) as table:
            return _is_new(old, table) and _is_read(old, new, edge)
        case Materialize() | TableJoin() | Aggregate() as operator:
            return _is_new(old, operator)
        case Append():
            return False  # its rows are events: those of before are gone


def _is_written(old: Flow, sink: Sink, table: MakesChanges) -> bool:
    """Tell whether a sink had rows of a table."""
    return any(each.reader == sink and each.table.state == table.state for each in readings(old))


def _is_new(old: Flow, operator: New) -> bool:
    return operator.state not in state_names(old)


def _is_read(old: Flow, new: Flow, edge: Driving) -> bool:
    name = source_of(new, edge).name
    return any(topic.name == name for topic in old.sources)


def lacking(old: Flow, new: Flow) -> Iterator[str]:
    """Yield the tables, and groups of them, that cannot begin with the rows that they should have.

    Args:
        old: The plan of the state.
        new: The plan that is to run, as it inherits the state.
    """
    kept = {reading.reader.id for reading in twins(new) if _is_added(old, new, reading)}
    grouping = (each for each in aggregates(new) if each.retracts)
    before = {sink.target for sink in old.sinks}
    for each in (*tables(new), *grouping):
        if not _is_new(old, each):
            continue
        match each:
            case Materialize(rows=Driving() as edge) if _is_read(old, new, edge):
                if each.id not in kept:
                    topic = source_of(new, edge).name
                    yield (
                        f"{table_called(new, each)}: it is new or another one, records of "
                        f"'{topic}' were read before it was there, and nothing else keeps them "
                        "with these columns"
                    )
                    continue
            case _:
                pass
        stays = [target for target in _outputs(new, each) if target in before]
        if stays and _reads_rows(old, new, each):
            names = " and ".join(f"'{target}'" for target in stays)
            yield (
                f"{table_called(new, each)}: it is new or another one, and output {names} has "
                "rows of what was there before"
            )


def _reads_rows(old: Flow, new: Flow, operator: New) -> bool:
    """Tell whether an operator begins with rows, or what is before it does."""
    if any(
        reading.reader.id == operator.id and _is_added(old, new, reading)
        for reading in (*readings(new), *twins(new))
    ):
        return True
    before = [operator_of(new, name) for name in inputs_of(operator)]
    return any(
        _reads_rows(old, new, each)
        for each in before
        if isinstance(each, Materialize | TableJoin | Aggregate) and _is_new(old, each)
    )


def _outputs(flow: Flow, table: MakesChanges) -> list[str]:
    """Return the outputs of which a table makes rows, by itself or through other tables."""
    found: list[str] = []
    for reading in readings(flow):
        if reading.table.id != table.id:
            continue
        match reading.reader:
            case TopicSink(target=target) | TableSink(target=target) | ConnectorSink(target=target):
                found.append(target)
            case Materialize() | TableJoin() | Aggregate() as reader:
                found += _outputs(flow, reader)
            case KeyedJoin() | Append():
                pass  # its rows are events
    return list(dict.fromkeys(found))


def beginning_with(old: Flow, new: Flow) -> Iterator[str]:
    """Yield what begins with the rows of which table."""
    names = {each.id: _called(new, each) for each in tables_of(new)}
    for beginning, reading in _beginnings(new).items():
        if beginning in new.begins and beginning not in old.begins:
            whose = names[reading.table.id]
            match reading.reader:
                case (
                    TopicSink(target=target)
                    | TableSink(target=target)
                    | ConnectorSink(target=target)
                ):
                    yield f"output '{target}': begins with all rows of {whose}"
                case KeyedJoin(sides=sides):
                    assert reading.side is not None
                    alias = sides[reading.side].alias
                    yield f"look-up '{alias}': begins with all rows of {whose}"
                case Append():
                    pass  # it begins with nothing
                case Materialize() | TableJoin() | Aggregate() as reader:
                    yield f"{_called(new, reader)}: begins with all rows of {whose}"


def _called(flow: Flow, table: MakesChanges) -> str:
    if isinstance(table, Aggregate):
        return group_called(flow, table)
    return table_called(flow, table)
