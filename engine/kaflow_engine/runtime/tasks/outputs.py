"""Where the rows of a plan go: the kinds of its sinks, and the outputs that they are given."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Literal, assert_never

import pyarrow as pa

from kaflow_engine.connectors.connections import Connections
from kaflow_engine.connectors.contract import Capabilities, Delivery, Outlet, Output, SinkKind
from kaflow_engine.connectors.sinks import sink_kind
from kaflow_engine.flow.chains.chain import driving_topics
from kaflow_engine.flow.flow import Flow
from kaflow_engine.flow.records import OUTPUT
from kaflow_engine.flow.sinks import ConnectorSink, Sink, TableSink, TopicSink
from kaflow_engine.operators.rows.change_rows import change_rows
from kaflow_engine.operators.rows.table_rows import partition_column, typed_rows
from kaflow_engine.plugins.installed import SINKS
from kaflow_engine.plugins.state import Owner
from kaflow_engine.runtime.tasks.letter_rows import letter_rows

NO_CONNECTIONS = Connections()


@dataclass(frozen=True, slots=True, kw_only=True)
class Parted:
    """How the rows of a table are parted by event time."""

    partition: Literal["hour", "day"]
    """What one of its partitions covers."""
    driving: str
    """The topic that the offsets in its rows belong to."""
    grouped: bool
    """Its rows name a group and a window instead of a record."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ColumnOutput:
    """An output whose rows are typed columns."""

    outlet: Outlet
    output: Output
    parted: Parted | None
    """None: a backfill writes beside the rows that are there, and replaces none."""
    typed: Callable[[pa.Table], pa.Table]
    """Makes typed columns of rows of schema OUTPUT."""
    owner: Owner | None = None
    """Whose state it is that the sink of a plugin learns."""

    @property
    def columns(self) -> pa.Schema:
        """Of the rows."""
        return self.typed(OUTPUT.empty_table()).schema


def kind_of(sink: Sink) -> SinkKind:
    """Return the kind of a sink."""
    match sink:
        case TopicSink():
            return sink_kind("kafka")
        case TableSink():
            return sink_kind("delta")
        case ConnectorSink(kind=kind):
            return sink_kind(kind)
        case _:
            assert_never(sink)


def promised(sink: Sink, delivery: Delivery) -> Capabilities:
    """Return what a sink promises where the author asks for a delivery."""
    settings = sink.settings if isinstance(sink, ConnectorSink) else ()
    return kind_of(sink).capabilities(delivery, dict(settings))


def column_outputs(
    plan: Flow, connections: Connections = NO_CONNECTIONS
) -> tuple[ColumnOutput, ...]:
    """Return the outputs of a plan whose rows are columns, a table of dead letters among them;
    those of others leave as records."""
    found = (_column_output(plan, sink, connections) for sink in plan.sinks)
    outputs = (*found, letter_output(plan, connections))
    return tuple(output for output in outputs if output is not None)


def letter_output(plan: Flow, connections: Connections) -> ColumnOutput | None:
    """Return the table of dead letters; None where they go elsewhere."""
    sink = plan.letters
    if not isinstance(sink, ConnectorSink):
        return None
    outlet = kind_of(sink).outlet
    assert outlet is not None
    return replace(_connector(sink, outlet, connections, plan.delivery), typed=letter_rows)


def _column_output(plan: Flow, sink: Sink, connections: Connections) -> ColumnOutput | None:
    outlet = kind_of(sink).outlet
    match sink:
        case TopicSink():
            return None
        case TableSink():
            assert outlet is not None
            return _table(plan, sink, outlet)
        case ConnectorSink():
            assert outlet is not None
            return _connector(sink, outlet, connections, plan.delivery)
        case _:
            assert_never(sink)


def _table(plan: Flow, sink: TableSink, outlet: Outlet) -> ColumnOutput:
    table = sink.table
    (driving,) = driving_topics(plan, sink)
    return ColumnOutput(
        outlet=outlet,
        output=Output(
            name=table.name, place=table.path, partition=partition_column(table.partition)
        ),
        parted=Parted(partition=table.partition, driving=driving.name, grouped=table.grouped),
        typed=lambda rows: typed_rows(table, rows),
    )


def _connector(
    sink: ConnectorSink, outlet: Outlet, connections: Connections, delivery: Delivery
) -> ColumnOutput:
    settings = dict(sink.settings)
    name = settings.get("connection")
    return ColumnOutput(
        outlet=outlet,
        output=Output(
            name=sink.target,
            place=sink.target,
            columns=sink.columns,
            key=sink.key,
            key_columns=sink.key_columns,
            changes=sink.changes,
            settings=settings,
            delivery=delivery,
            connection=connections.of(sink.kind, name if isinstance(name, str) else None),
        ),
        parted=None,
        typed=lambda rows: change_rows(sink, rows),
        owner=Owner(SINKS, sink.kind, sink.target) if "." in sink.kind else None,
    )
