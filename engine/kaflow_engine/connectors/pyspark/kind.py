"""Data sources of PySpark as a kind of source: they are read from journals."""

from collections.abc import Mapping
from typing import TYPE_CHECKING

from kaflow_engine.connectors.sources.contract import SourcePlace
from kaflow_engine.flow.origins.plugins import PySparkParams
from kaflow_engine.formats.contract import Format
from kaflow_engine.model.columns import Column

if TYPE_CHECKING:
    from kaflow_engine.connectors.journal.source import JournalSource


class PySparkKind:
    """Opens journals, and shows the columns of data sources."""

    def open(self, params: PySparkParams, place: SourcePlace) -> "JournalSource":
        """Open a journal."""
        from kaflow_engine.connectors.journal.source import JournalSource

        ends_as = kind_of(params) if params.bounded else None
        return JournalSource(name=place.name, folder=place.journal, ends_as=ends_as)

    def check(self, params: PySparkParams, connection: Mapping[str, str]) -> None:
        """Do nothing: a reader looks at what it needs."""

    def sample(
        self, params: PySparkParams, form: Format, connection: Mapping[str, str]
    ) -> tuple[Column, ...] | None:
        """Return the columns of its schema; it may ask a system for it."""
        from kaflow_engine.connectors.pyspark.reader import Reading

        return Reading(params, connection).columns


def kind_of(params: PySparkParams) -> str:
    """Return whose offsets and rows those of a journal are."""
    return f"{params.type}:{params.format}"
