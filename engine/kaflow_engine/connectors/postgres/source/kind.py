"""Tables of PostgreSQL as a kind of source."""

from collections.abc import Mapping
from typing import TYPE_CHECKING

from kaflow_engine.connectors.sources.contract import SourcePlace
from kaflow_engine.flow.origins.databases import PostgresParams
from kaflow_engine.formats.contract import Format
from kaflow_engine.model.columns import Column

if TYPE_CHECKING:
    from kaflow_engine.connectors.pages.source import PagedSource


class PostgresKind:
    """Opens tables; the database says what columns they have."""

    def open(self, params: PostgresParams, place: SourcePlace) -> "PagedSource":
        """Open a table."""
        from kaflow_engine.connectors.pages.source import PagedSource
        from kaflow_engine.connectors.postgres.source.reader import PostgresReader

        reader = PostgresReader(params, place.connection, f"source '{place.name}'")
        return PagedSource(place, reader, params.page_size)

    def check(self, params: PostgresParams, connection: Mapping[str, str]) -> None:
        """Look at the table, its key, its columns and the condition."""
        from kaflow_engine.connectors.postgres.source.reader import PostgresReader

        PostgresReader(params, connection, "the source").check()

    def sample(
        self, params: PostgresParams, form: Format, connection: Mapping[str, str]
    ) -> tuple[Column, ...] | None:
        """Return the columns of the table."""
        from kaflow_engine.connectors.postgres.source.reader import PostgresReader

        return PostgresReader(params, connection, "the source").check()
