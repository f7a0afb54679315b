"""The blackhole as a kind of sink: rows are counted and dropped."""

from collections.abc import Sequence
from dataclasses import dataclass

from kaflow_engine.connectors.contract import (
    Capabilities,
    Delivery,
    Outlet,
    Output,
    Settings,
    TaskPart,
    Unfit,
    Written,
)
from kaflow_engine.connectors.unheld import UnheldOutlet, UnheldRows
from kaflow_engine.model.columns import Column

CAPABILITIES = Capabilities(
    accepts=frozenset({"append", "upsert"}),
    commit="task",
    guarantee="at_least_once",
    reason="no row is kept, and rows of the last batch may be counted again",
    ordered=False,
)


class Blackhole:
    """At least once: nothing is kept, so nothing tells what was counted."""

    outlet: Outlet | None

    def __init__(self) -> None:
        self.outlet = UnheldOutlet(lambda output, _: DroppedRows(output))

    def capabilities(self, delivery: Delivery, settings: Settings) -> Capabilities:
        """Return what the blackhole promises."""
        return CAPABILITIES

    def unfit(self, columns: Sequence[Column], settings: Settings) -> Sequence[Unfit]:
        """Return nothing: it looks at no column."""
        return ()


@dataclass(frozen=True)
class DroppedRows(UnheldRows):
    """Tasks count rows."""

    output: Output

    @property
    def capabilities(self) -> Capabilities:
        """What the blackhole promises."""
        return CAPABILITIES

    def write(self, part: TaskPart) -> Written:
        """Count the rows of a task."""
        return Written(rows={self.output.name: part.rows.num_rows})
