"""Tables of ClickHouse as a kind of source."""

from collections.abc import Mapping
from typing import TYPE_CHECKING

from kaflow_engine.connectors.sources.contract import SourcePlace
from kaflow_engine.flow.origins.databases import ClickHouseParams
from kaflow_engine.formats.contract import Format
from kaflow_engine.model.columns import Column

if TYPE_CHECKING:
    from kaflow_engine.connectors.pages.source import PagedSource


class ClickHouseKind:
    """Opens tables; the server says what columns they have."""

    def open(self, params: ClickHouseParams, place: SourcePlace) -> "PagedSource":
        """Open a table."""
        from kaflow_engine.connectors.clickhouse.source.reader import ClickHouseReader
        from kaflow_engine.connectors.pages.source import PagedSource

        reader = ClickHouseReader(params, place.connection, f"source '{place.name}'")
        return PagedSource(place, reader, params.page_size)

    def check(self, params: ClickHouseParams, connection: Mapping[str, str]) -> None:
        """Look at the table, its key, its columns and the condition."""
        from kaflow_engine.connectors.clickhouse.source.reader import ClickHouseReader

        ClickHouseReader(params, connection, "the source").check()

    def sample(
        self, params: ClickHouseParams, form: Format, connection: Mapping[str, str]
    ) -> tuple[Column, ...] | None:
        """Return the columns of the table."""
        from kaflow_engine.connectors.clickhouse.source.reader import ClickHouseReader

        return ClickHouseReader(params, connection, "the source").check()
