"""Webhooks as a kind of source: requests are written down by the receiver, and read from there."""

from collections.abc import Mapping
from typing import TYPE_CHECKING

from kaflow_engine.connectors.sources.contract import SourcePlace
from kaflow_engine.flow.sources import WebhookParams
from kaflow_engine.formats.contract import Format
from kaflow_engine.model.columns import Column

if TYPE_CHECKING:
    from kaflow_engine.connectors.journal.source import JournalSource


class WebhookSourceKind:
    """Opens the journals of webhooks."""

    def open(self, params: WebhookParams, place: SourcePlace) -> "JournalSource":
        """Open a journal."""
        from kaflow_engine.connectors.journal.source import JournalSource

        return JournalSource(name=place.name, folder=place.journal)

    def check(self, params: WebhookParams, connection: Mapping[str, str]) -> None:
        """Do nothing: the receiver looks at its port."""

    def sample(
        self, params: WebhookParams, form: Format, connection: Mapping[str, str]
    ) -> tuple[Column, ...] | None:
        """Return None: nothing was sent yet; its columns are declared."""
        return None
