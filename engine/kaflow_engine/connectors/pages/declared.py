"""Columns that an author names, against those that the table has."""

from collections.abc import Iterable, Sequence

from kaflow_engine.errors import SourceUnfit, UnknownName


def require_columns(table: str, what: str, named: Iterable[str], known: Sequence[str]) -> None:
    """Check that a table has columns.

    Args:
        table: As the author calls it.
        what: Reads it, as errors say it.
        named: Which columns.
        known: Those that it has.

    Raises:
        SourceUnfit: It has not, with the nearest name.
    """
    for name in named:
        if name not in known:
            near = UnknownName("column", name, known).hint
            raise SourceUnfit(
                f"table '{table}', which {what} reads, has no column '{name}'",
                hint=near or f"it has {', '.join(known)}",
            )
