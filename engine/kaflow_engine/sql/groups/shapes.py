"""What a group is made of where no GROUP BY makes it: runs of rows, and changes of a table."""

from dataclasses import dataclass

from kaflow_engine.model.columns import Column


@dataclass(frozen=True, slots=True, kw_only=True)
class RunShape:
    """Runs of `size` rows, and the SQL over each of them."""

    size: int
    every: int | None
    """Milliseconds of batch time after which a run is made of fewer; None: it waits."""
    per_partition: bool
    """The rows of each source partition make runs of their own."""
    sql: str
    """DuckDB's SQL over `batch`."""
    inputs: tuple[Column, ...]
    """Of `batch`, in the order of the keys of the group."""
    results: tuple[Column, ...]
    """What the SQL selects."""


@dataclass(frozen=True, slots=True, kw_only=True)
class AppendShape:
    """Changes of the table `of` as rows of their own; with `deletes` also rows that go."""

    of: str
    deletes: bool
