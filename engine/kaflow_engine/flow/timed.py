"""The operators of a flow that follow batch time."""

from dataclasses import dataclass
from typing import Literal

from kaflow_engine.model.columns import Column

NUMBER, AT = "$run", "$at"
"""Columns of `batch` where it has the rows of many runs: which run, and the place among all."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Throttle:
    """Changes of a table on their way to a sink, behind an exchange by output key: a key sends one
    at most in so much of batch time; of what is held the last one leaves."""

    type: Literal["throttle"] = "throttle"
    id: str
    state: int
    """The name of its state: in change files, copies and snapshots."""
    inputs: tuple[str, ...]
    """The projections whose encoded rows it takes."""
    every: int
    """Milliseconds of batch time from one change of a key to its next one."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Runs:
    """The next so many rows together, behind an exchange to one writer, or to one for each source
    partition; what SQL makes of each run leaves, as append rows.

    Its rows have the columns `alias.<result>`.
    """

    type: Literal["runs"] = "runs"
    id: str
    state: int
    """The name of its state: in change files, copies and snapshots."""
    inputs: tuple[str, ...]
    """The projections whose rows it takes, those of a union in the order of its branches, and the
    ledgers that send on those of them which they judge."""
    alias: str
    columns: tuple[Column, ...]
    """What the SQL reads of a row."""
    sql: str
    """Over the table `batch`."""
    together: str | None = None
    """What selects the same of many runs at once, with NUMBER behind, in the order of the runs,
    over a `batch` with NUMBER and AT; None: only a run by itself can be asked."""
    results: tuple[Column, ...]
    """What the SQL selects."""
    size: int
    """Rows of a run."""
    every: int | None
    """Milliseconds of batch time after its first row at which a run has the rows that there are;
    None: it waits."""
    per_partition: bool
    """The rows of each source partition make runs of their own."""
    chain: int | None = None
    """The number of its chain, where its rows come from several others; None: that of its rows."""

    @property
    def is_table(self) -> bool:
        """Whether its rows are those of a table, which are replaced."""
        return False
