"""A table that queries look up, of whichever database."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from kaflow_engine.connectors.attached.contract import Bound
from kaflow_engine.connectors.attached.kinds import attached_database
from kaflow_engine.errors import SourceUnfit
from kaflow_engine.flow.origins.databases import AttachedParams
from kaflow_engine.model.columns import Column

_AT_ONCE = 10_000
"""Values that one query asks for."""


@dataclass(frozen=True, slots=True)
class AttachedTable:
    """Looks rows up, and what columns they have."""

    params: AttachedParams
    connection: Mapping[str, str] = field(repr=False)
    name: str
    """Of the source, for errors."""

    def columns(self) -> tuple[Column, ...]:
        """Look at the table and at the condition; return its columns.

        Raises:
            SourceAway: The database does not answer.
            SourceUnfit: It refuses, or has no such table.
        """
        with attached_database(self.params.type).open(*self._which) as table:
            table.check()
            return tuple(table.columns)

    def with_values(
        self,
        wanted: Sequence[Column],
        on: Sequence[str],
        keys: Sequence[Sequence[str]],
        *,
        once: bool = False,
    ) -> list[tuple[int, str]]:
        """Return the rows that have some values: of each the place of the values, and itself as
        JSON.

        Args:
            wanted: Columns of a row, with the types that they had when it was planned.
            on: Columns of the table.
            keys: Their values as text, each once.
            once: Equal rows are one.

        Raises:
            SourceAway: The database does not answer.
            SourceUnfit: It refuses, or the table is no longer what it was.
        """
        found: list[tuple[int, str]] = []
        if not keys:
            return found
        with attached_database(self.params.type).open(*self._which) as table:
            self._check(wanted, table.columns)
            for start in range(0, len(keys), _AT_ONCE):
                some = table.find(wanted, on, keys[start : start + _AT_ONCE], once=once)
                found += [(start + place, row) for place, row in some]
        return found

    def rows(self, wanted: Sequence[Column], bounds: Sequence[Bound], most: int) -> list[str]:
        """Return all rows within some bounds, each as JSON, and not more than `most` of them.

        Args:
            wanted: Columns of a row, with the types that they had when they were looked at.
            bounds: What may be left to the database.
            most: Rows.

        Raises:
            SourceAway: The database does not answer.
            SourceUnfit: It refuses, or the table is no longer what it was.
        """
        with attached_database(self.params.type).open(*self._which) as table:
            self._check(wanted, table.columns)
            return list(table.scan(wanted, bounds, most))

    @property
    def _which(self) -> tuple[AttachedParams, Mapping[str, str], str]:
        return self.params, self.connection, self.name

    def _check(self, wanted: Sequence[Column], columns: Sequence[Column]) -> None:
        """Refuse a table that is no longer what was planned with: its values would go missing."""
        now = {column.name: column.type for column in columns}
        for column in wanted:
            if now.get(column.name) != column.type:
                had = f"is {now[column.name]}" if column.name in now else "is gone"
                raise SourceUnfit(
                    f"column '{column.name}' of table '{self.params.table}' {had}, and was "
                    f"{column.type} when source '{self.name}' was planned",
                    hint="start the pipeline again; or declare the columns that it has",
                )
