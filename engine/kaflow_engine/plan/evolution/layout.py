"""Where the columns of stored rows stand."""

from collections.abc import Sequence

from kaflow_engine.model.columns import Column
from kaflow_engine.operators.rows.layout import GONE, is_gone


def inherited(old: Sequence[Column], new: Sequence[Column]) -> tuple[Column, ...]:
    """Return columns in the order in which values of others are stored.

    >>> [c.name for c in inherited([Column("a", "DATE"), Column("c", "DATE")], [Column("b", "DATE"),
    ... Column("c", "DATE")])]
    ['$gone.0', 'c', 'b']
    """
    rest = {column.name: column for column in new}
    kept = [
        column if is_gone(column) else rest.pop(column.name, Column(f"{GONE}{i}", "VARCHAR"))
        for i, column in enumerate(old)
    ]
    return (*kept, *rest.values())
