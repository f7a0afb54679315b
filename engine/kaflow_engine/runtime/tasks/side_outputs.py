"""Side outputs in a task: each sees the rows of its output, and stops nothing."""

from collections.abc import Callable, Iterator, Mapping
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from kaflow_engine.flow.flow import Flow
from kaflow_engine.flow.records import DEAD_LETTER
from kaflow_engine.flow.sinks import SideOutput, Sink
from kaflow_engine.operators.output.seen import seen_columns, seen_rows
from kaflow_engine.plugins.side_outputs import GivenSideOutput, SeenRows, side_output_plugin

Connection = Callable[[str, str], Mapping[str, str]]
"""Takes the name of a plugin, and of a connection; returns what the configuration says of it."""


def show_rows(
    plan: Flow, rows: pa.Table, batch: int, connection: Connection
) -> Iterator[Mapping[str, Any]]:
    """Show rows of schema OUTPUT to the side outputs of a plan; yield a note of each.

    Args:
        plan: What runs.
        rows: Those of a task, of all outputs.
        batch: Its number.
        connection: Says what the configuration has of a plugin.
    """
    rows = rows.filter(pc.not_equal(rows["kind"], DEAD_LETTER))
    for sink in plan.sinks:
        asked = [each for each in plan.side_outputs if each.target == sink.target]
        if not asked:
            continue
        mine = rows.filter(pc.equal(rows["topic"], sink.target))
        for each in asked if mine.num_rows else ():
            note = {"output": each.target, "plugin": each.plugin, "rows": mine.num_rows}
            try:
                _show(plan, sink, each, mine, batch, connection)
            except Exception as error:  # whatever it is, rows leave all the same
                note["error"] = f"{type(error).__name__}: {error}"
            yield {"side_output": note}


def _show(
    plan: Flow, sink: Sink, asked: SideOutput, rows: pa.Table, batch: int, connection: Connection
) -> None:
    kind, columns = side_output_plugin(asked.plugin), seen_columns(plan, sink)
    plugin = kind.open(
        GivenSideOutput(
            output=asked.target,
            options=kind.options.model_validate(dict(asked.options)),
            settings=connection(asked.plugin, ""),
            columns={column.name: column.type for column in columns},
        )
    )
    plugin(SeenRows(rows=seen_rows(sink, columns, rows), batch=batch))
