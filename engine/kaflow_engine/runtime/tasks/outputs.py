"""Where the rows of a plan go: the kinds of its sinks, and the outputs that they are given."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal, assert_never

import pyarrow as pa

from kaflow_engine.connectors.contract import Outlet, Output, SinkKind
from kaflow_engine.connectors.sinks import sink_kind
from kaflow_engine.flow.chains import driving_topics
from kaflow_engine.flow.flow import Flow
from kaflow_engine.flow.records import OUTPUT
from kaflow_engine.flow.sinks import Sink, TableSink, TopicSink
from kaflow_engine.operators.rows.table_rows import partition_column, typed_rows


@dataclass(frozen=True, slots=True, kw_only=True)
class ColumnOutput:
    """An output whose rows are typed columns."""

    outlet: Outlet
    output: Output
    partition: Literal["hour", "day"]
    """What one of its partitions covers."""
    driving: str
    """The topic that the offsets in its rows belong to."""
    grouped: bool
    """Its rows name a group and a window instead of a record."""
    typed: Callable[[pa.Table], pa.Table]
    """Makes typed columns of rows of schema OUTPUT."""

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
        case _:
            assert_never(sink)


def column_outputs(plan: Flow) -> tuple[ColumnOutput, ...]:
    """Return the outputs of a plan whose rows are columns; those of others leave as records."""
    found = (_column_output(plan, sink) for sink in plan.sinks)
    return tuple(output for output in found if output is not None)


def _column_output(plan: Flow, sink: Sink) -> ColumnOutput | None:
    outlet = kind_of(sink).outlet
    if outlet is None or not isinstance(sink, TableSink):
        return None
    table = sink.table
    (driving,) = driving_topics(plan, sink)
    return ColumnOutput(
        outlet=outlet,
        output=Output(
            name=table.name, place=table.path, partition=partition_column(table.partition)
        ),
        partition=table.partition,
        driving=driving.name,
        grouped=table.grouped,
        typed=lambda rows: typed_rows(table, rows),
    )
