"""Side outputs in a task: each sees the rows of its output, and stops nothing."""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from kaflow_engine.flow.flow import Flow
from kaflow_engine.flow.records import DEAD_LETTER
from kaflow_engine.flow.sinks import SideOutput, Sink
from kaflow_engine.measures import Measures
from kaflow_engine.operators.output.seen import seen_columns, seen_rows
from kaflow_engine.plugins.metrics import PluginMetrics
from kaflow_engine.plugins.side_outputs import (
    GivenSideOutput,
    SeenRows,
    SideOutputPlugin,
    side_output_plugin,
)

Connection = Callable[[str, str], Mapping[str, str]]
"""Takes the name of a plugin, and of a connection; returns what the configuration says of it."""


@dataclass(frozen=True, slots=True)
class OpenSideOutputs:
    """The side outputs of a run that this process has opened; each is, with its first rows."""

    _plugins: dict[int, SideOutputPlugin] = field(default_factory=dict[int, SideOutputPlugin])
    """By their place in the plan."""
    _measures: Measures = field(default_factory=Measures)
    """What they have measured since a task took it."""

    def __reduce__(self) -> tuple[type["OpenSideOutputs"], tuple[()]]:
        return OpenSideOutputs, ()  # another process opens its own

    def show(
        self,
        plan: Flow,
        rows: pa.Table,
        batch: int,
        connection: Connection,
        measures: Measures,
    ) -> Iterator[Mapping[str, Any]]:
        """Show rows of schema OUTPUT to the side outputs of a plan; yield a note of each.

        Args:
            plan: What runs; the same at each call.
            rows: Those of a task, of all outputs.
            batch: Its number.
            connection: Says what the configuration has of a plugin.
            measures: Takes what they measure.
        """
        rows = rows.filter(pc.not_equal(rows["kind"], DEAD_LETTER))
        for sink in plan.sinks:
            asked = [n for n, each in enumerate(plan.side_outputs) if each.target == sink.target]
            if not asked:
                continue
            mine = rows.filter(pc.equal(rows["topic"], sink.target))
            for number in asked if mine.num_rows else ():
                each = plan.side_outputs[number]
                note = {"output": each.target, "plugin": each.plugin, "rows": mine.num_rows}
                try:
                    columns = seen_columns(plan, sink)
                    if number not in self._plugins:
                        self._plugins[number] = self._opened(plan, sink, each, connection)
                    shown = SeenRows(rows=seen_rows(sink, columns, mine), batch=batch)
                    self._plugins[number](shown)
                except Exception as error:  # whatever it is, rows leave all the same
                    note["error"] = f"{type(error).__name__}: {error}"
                yield {"side_output": note}
        measures.add(self._measures.handed_over())

    def _opened(
        self, plan: Flow, sink: Sink, asked: SideOutput, connection: Connection
    ) -> SideOutputPlugin:
        kind = side_output_plugin(asked.plugin)
        return kind.open(
            GivenSideOutput(
                output=asked.target,
                options=kind.options.model_validate(dict(asked.options)),
                settings=connection(asked.plugin, ""),
                columns={column.name: column.type for column in seen_columns(plan, sink)},
                metrics=PluginMetrics(asked.plugin, self._measures),
            )
        )
