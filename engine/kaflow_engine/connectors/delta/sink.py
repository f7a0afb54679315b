"""Delta tables as a kind of sink: what they promise."""

from collections.abc import Sequence
from functools import cached_property

from kaflow_engine.connectors.contract import (
    Capabilities,
    Delivery,
    Outlet,
    Settings,
    Unfit,
)
from kaflow_engine.connectors.delta.capabilities import CAPABILITIES
from kaflow_engine.model.columns import Column


class DeltaTables:
    """Exactly once, whatever the author asks for: a commit names its batch."""

    @cached_property
    def outlet(self) -> Outlet | None:
        """What opens tables."""
        from kaflow_engine.connectors.delta.outputs import DeltaOutlet  # it loads the library

        return DeltaOutlet()

    def capabilities(self, delivery: Delivery, settings: Settings) -> Capabilities:
        """Return what a table promises."""
        return CAPABILITIES

    def unfit(self, columns: Sequence[Column], settings: Settings) -> Sequence[Unfit]:
        """Return nothing: the planner looks at the columns of tables itself."""
        return ()
