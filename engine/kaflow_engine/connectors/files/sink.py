"""Files in a folder as a kind of sink: what they promise, and which columns they take."""

from collections.abc import Sequence
from functools import cached_property

from kaflow_engine.connectors.contract import (
    Capabilities,
    Delivery,
    Outlet,
    Settings,
    Unfit,
)
from kaflow_engine.connectors.files.capabilities import CAPABILITIES
from kaflow_engine.model.columns import Column


class FileFolders:
    """Exactly once, whatever the author asks for: a batch that runs again finds its own names."""

    @cached_property
    def outlet(self) -> Outlet | None:
        """What opens folders."""
        from kaflow_engine.connectors.files.outputs import FolderOutlet  # it loads Arrow

        return FolderOutlet()

    def capabilities(self, delivery: Delivery, settings: Settings) -> Capabilities:
        """Return what a folder promises."""
        return CAPABILITIES

    def unfit(self, columns: Sequence[Column], settings: Settings) -> Sequence[Unfit]:
        """Return columns that files of a format, or names of folders, cannot hold."""
        from kaflow_engine.connectors.files.types import unfit

        return unfit(columns, settings)
