"""Sources that cannot be read twice, of whatever kind: all are read from their journals."""

from collections.abc import Mapping
from typing import TYPE_CHECKING

from kaflow_engine.connectors.sources.contract import SourcePlace
from kaflow_engine.flow.sources import JournalParams
from kaflow_engine.formats.contract import Format
from kaflow_engine.model.columns import Column

if TYPE_CHECKING:
    from kaflow_engine.connectors.journal.source import JournalSource


class JournalKind:
    """Opens journals; what comes is written to them by a receiver, see `receivers`."""

    def open(self, params: JournalParams, place: SourcePlace) -> "JournalSource":
        """Open a journal."""
        from kaflow_engine.connectors.journal.source import JournalSource

        return JournalSource(name=place.name, folder=place.journal)

    def sample(
        self, params: JournalParams, form: Format, connection: Mapping[str, str]
    ) -> tuple[Column, ...] | None:
        """Return None: nothing has come yet; its columns are declared."""
        return None
