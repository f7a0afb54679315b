"""A named, typed column."""

from collections.abc import Mapping
from dataclasses import dataclass


@dataclass(frozen=True, slots=True, order=True)
class Column:
    """A column and its DuckDB type, as DuckDB writes it."""

    name: str
    type: str


def widened(
    known: Mapping[str, tuple[Column, ...]], found: Mapping[str, tuple[Column, ...]]
) -> dict[str, tuple[Column, ...]]:
    """Return the known columns of each topic that was found again, and behind them its new ones."""
    names = {topic: {column.name for column in columns} for topic, columns in known.items()}
    return {
        topic: (*known[topic], *(c for c in columns if c.name not in names[topic]))
        for topic, columns in found.items()
    }
