"""What begins with the rows that a table has: readers that were added to a pipeline."""

import re
from collections.abc import Iterator
from dataclasses import dataclass

from kaflow_engine.flow.edges import Driving
from kaflow_engine.flow.flow import Beginning, Flow
from kaflow_engine.flow.graph import (
    projects_of,
    readers_of,
    sides_of,
    table_sides_of,
    taker_of,
)
from kaflow_engine.flow.operators import Aggregate, KeyedJoin, MakesChanges, Project
from kaflow_engine.flow.sinks import Sink
from kaflow_engine.flow.tables import Append, Materialize, TableJoin
from kaflow_engine.flow.timed import Runs
from kaflow_engine.flow.transforms import Transform
from kaflow_engine.model.columns import Column

Reader = Sink | Aggregate | Materialize | TableJoin | Append | KeyedJoin


@dataclass(frozen=True, slots=True, kw_only=True)
class Reading:
    """One way on which an operator or a sink takes the changes of a table."""

    table: MakesChanges
    reader: Reader
    project: Project | None = None
    """The projection in between."""
    side: int | None = None
    """Which side of a join takes them."""
    branch: int = 0
    """Which branch of a sink takes them."""

    @property
    def beginning(self) -> Beginning:
        """What the reading is called in plans that come later."""
        match self.reader:
            case Aggregate(state=state) | Materialize(state=state):
                name = str(state)
            case TableJoin(state=state) | KeyedJoin(state=state):
                name = f"{state}.{self.side}"
            case Append(id=name):
                pass  # no plan begins with it: its rows are events, from now on
            case sink:
                name = f"{sink.id}#{self.branch}"
        return Beginning(table=self.table.state, reader=name)


def tables_of(flow: Flow) -> tuple[MakesChanges, ...]:
    """Return the operators whose rows are those of tables, each behind those that it reads."""
    return tuple(
        each
        for each in flow.operators
        if isinstance(each, Materialize | TableJoin)
        or (isinstance(each, Aggregate) and each.is_table)
    )


def readings(flow: Flow) -> Iterator[Reading]:
    """Yield the ways on which tables are read."""
    for table in tables_of(flow):
        yield from readings_of(flow, table)


def readings_of(flow: Flow, table: MakesChanges) -> Iterator[Reading]:
    """Yield the ways on which one table is read."""
    for each in readers_of(flow, table.id):
        match each:
            case Project():
                yield _through(flow, table, each)
            case Materialize():
                yield Reading(table=table, reader=each)
            case KeyedJoin():
                raise AssertionError("the rows of a join are append rows")
    for join, side in (*table_sides_of(flow, table.id), *sides_of(flow, table.id)):
        yield Reading(table=table, reader=join, side=side)


def inner_readings(flow: Flow, table: MakesChanges) -> tuple[Reading, ...]:
    """Return the ways on which operators read a table, without those to sinks."""
    found = readings_of(flow, table)
    return tuple(each for each in found if not isinstance(each.reader, Sink))


def _through(flow: Flow, table: MakesChanges, project: Project) -> Reading:
    reader = taker_of(flow, project)
    if isinstance(reader, Aggregate | Append):
        return Reading(table=table, reader=reader, project=project)
    assert not isinstance(reader, Runs | Transform), "rows that change are not taken"
    branch = projects_of(flow, reader).index(project)
    return Reading(table=table, reader=reader, project=project, branch=branch)


def twins(flow: Flow) -> Iterator[Reading]:
    """Yield tables of topics, each with another one that has, or may have, all of its rows.

    Chains keep the rows of a topic each for itself: the table of a chain that is new begins with
    those that another one keeps.
    """
    found = [each for each in flow.operators if isinstance(each, Materialize)]
    for table in found:
        for reader in found:
            if table is not reader and _has_rows_of(table, reader):
                yield Reading(table=table, reader=reader)


def renamed(table: Materialize, reader: Materialize) -> tuple[Column, ...]:
    """Return the columns of a table as its twin calls them."""
    before, after = _alias(table), _alias(reader)
    return tuple(
        Column(f"{after}.{column.name.removeprefix(f'{before}.')}", column.type)
        for column in table.columns
    )


def _has_rows_of(table: Materialize, reader: Materialize) -> bool:
    match table.rows, reader.rows:
        case Driving() as kept, Driving() as edge:
            pass
        case _:
            return False
    if kept.input != edge.input or _kept_by(table) != _kept_by(reader):
        return False
    mine = _plain(edge.filter, edge)
    if kept.filter is not None and _plain(kept.filter, kept) != mine:
        return False
    if table.retain is not None and (reader.retain is None or reader.retain > table.retain):
        return False
    columns = renamed(table, reader)
    names = {column.name for column in columns}
    return {*reader.columns} <= {*columns} and _used(edge) <= names


def _kept_by(table: Materialize) -> object:
    """Return what says which record becomes which row."""
    edge = table.rows
    assert isinstance(edge, Driving)
    keys = [(column, _plain(sql, edge)) for column, sql in table.keys]
    deletes = [_plain(sql, edge) for sql in table.deletes or ()]
    return keys, table.deletes is None, deletes, _plain(table.operation, edge)


def _plain(sql: str | None, edge: Driving) -> str | None:
    """Return SQL without the alias of its columns."""
    return None if sql is None else sql.replace(f'"{edge.alias}.', '"')


def _used(edge: Driving) -> set[str]:
    """Return the columns, named `alias.column`, that a filter reads."""
    return set(re.findall(rf'"({re.escape(edge.alias)}\.[^"]*)"', edge.filter or ""))


def _alias(table: Materialize) -> str:
    assert isinstance(table.rows, Driving)
    return table.rows.alias
