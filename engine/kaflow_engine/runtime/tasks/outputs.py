"""Where the rows of a plan go: its kind of sink, and the output that the sink is given."""

from collections.abc import Callable
from dataclasses import dataclass

import pyarrow as pa

from kaflow_engine.connectors.contract import Outlet, Output, SinkKind
from kaflow_engine.connectors.sinks import sink_kind
from kaflow_engine.flow.plan import FinishParams
from kaflow_engine.flow.records import OUTPUT
from kaflow_engine.operators.rows.table_rows import partition_column, typed_rows


@dataclass(frozen=True, slots=True, kw_only=True)
class ColumnOutput:
    """An output whose rows are typed columns."""

    outlet: Outlet
    output: Output
    typed: Callable[[pa.Table], pa.Table]
    """Makes typed columns of rows of schema OUTPUT."""

    @property
    def columns(self) -> pa.Schema:
        """Of the rows."""
        return self.typed(OUTPUT.empty_table()).schema


def kind_of(finish: FinishParams) -> SinkKind:
    """Return the kind of sink of a plan's rows."""
    return sink_kind("kafka" if finish.table is None else "delta")


def column_output(finish: FinishParams) -> ColumnOutput | None:
    """Return the output of a plan where its sink takes columns; None: rows leave as records."""
    outlet, table = kind_of(finish).outlet, finish.table
    if outlet is None or table is None:
        return None
    return ColumnOutput(
        outlet=outlet,
        output=Output(
            name=table.name, place=table.path, partition=partition_column(table.partition)
        ),
        typed=lambda rows: typed_rows(table, rows),
    )
