"""What a database must offer whose tables are looked up, as Protocols."""

from collections.abc import Iterable, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import Any, Protocol

from kaflow_engine.errors import SourceAway, SourceUnfit
from kaflow_engine.flow.origins.databases import AttachedParams
from kaflow_engine.model.columns import Column

KEYS, KEY, PLACE = "_kaflow_keys", "_kaflow_key_", "_kaflow_place"
"""In generated SQL: the values that rows must have, as a table; its columns, before their numbers;
and the place of the values among those that were given."""


@dataclass(frozen=True, slots=True)
class Bound:
    """What rows must fulfil: a whole number, a text or a time on one side of a value."""

    column: str
    operator: str
    """One of `= < <= > >=`; of texts `=` only."""
    text: str
    """The value, as text of the type that the column has here."""


class OpenTable(Protocol):
    """A table or a view while its database is open; errors of drivers go through."""

    @property
    def columns(self) -> Sequence[Column]:
        """Those that are declared, else all, with the types that they have here."""
        ...

    def check(self) -> None:
        """Let the database read the condition of the source, over no rows."""
        ...

    def find(
        self,
        wanted: Sequence[Column],
        on: Sequence[str],
        keys: Sequence[Sequence[str]],
        *,
        once: bool,
    ) -> Iterable[tuple[int, str]]:
        """Return the rows that have some values, by one query: for each the place of its values
        among them, and itself as JSON.

        Rows that have them by the rules of the database are enough: they are compared again.

        Args:
            wanted: Columns of a row.
            on: Columns of the table that must equal the values.
            keys: Values as text of the types that `on` has here, each once.
            once: Of equal rows one is enough.
        """
        ...

    def scan(self, wanted: Sequence[Column], bounds: Sequence[Bound], most: int) -> Iterable[str]:
        """Return all rows within some bounds, each as JSON, and not more than `most` of them.

        Rows outside of the bounds do no harm: they are compared again.

        Args:
            wanted: Columns of a row.
            bounds: All of them count.
            most: Rows.
        """
        ...


class AttachedDatabase(Protocol):
    """A kind of database; it may only be read."""

    def open(
        self, params: Any, connection: Mapping[str, str], name: str
    ) -> AbstractContextManager[OpenTable]:
        """Open a table of a source; what goes wrong meanwhile is raised as one of our errors.

        Args:
            params: Which one, of `AttachedParams`.
            connection: How its database is reached; empty of one that needs none.
            name: Of the source, for errors.

        Raises:
            SourceAway: The database does not answer now.
            SourceUnfit: It refuses, or has no such table.
        """
        ...


def where_sql(params: AttachedParams, conditions: Sequence[str] = ()) -> str:
    """Return the WHERE of a source, and of what else its rows must fulfil; empty without any."""
    own = () if params.where is None else (f"({params.where}\n)",)  # a comment ends with its line
    found = (*own, *conditions)
    return f" WHERE {' AND '.join(found)}" if found else ""


def away(name: str, said: str, hint: str | None = None) -> SourceAway:
    """Return the error of a database that may heal."""
    return SourceAway(f"looking up source '{name}' failed: {said}", hint=hint)


def unfit(name: str, said: str, hint: str) -> SourceUnfit:
    """Return the error of a database that does not heal by itself."""
    return SourceUnfit(f"looking up source '{name}' failed: {said}", hint=hint)
