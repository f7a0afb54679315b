"""A named, typed column."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, order=True)
class Column:
    """A column and its DuckDB type, as DuckDB writes it."""

    name: str
    type: str
