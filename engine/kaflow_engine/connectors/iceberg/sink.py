"""Iceberg tables as a kind of sink: what they promise."""

from collections.abc import Sequence
from functools import cached_property

from kaflow_engine.connectors.contract import (
    Capabilities,
    Delivery,
    Outlet,
    Settings,
    Unfit,
)
from kaflow_engine.connectors.iceberg.capabilities import CAPABILITIES
from kaflow_engine.model.columns import Column


class IcebergTables:
    """Exactly once, whatever the author asks for: a commit names its batch."""

    @cached_property
    def outlet(self) -> Outlet | None:
        """What opens tables."""
        from kaflow_engine.connectors.iceberg.outputs import IcebergOutlet  # it loads Arrow

        return IcebergOutlet()

    def capabilities(self, delivery: Delivery, settings: Settings) -> Capabilities:
        """Return what a table promises."""
        return CAPABILITIES

    def unfit(self, columns: Sequence[Column], settings: Settings) -> Sequence[Unfit]:
        """Return columns that no table can keep as they are."""
        from kaflow_engine.connectors.iceberg.types import unfit

        return unfit(columns)
