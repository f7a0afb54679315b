"""How operators of one task hand rows to each other: typed, without the form of the exchange."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Protocol

import pyarrow as pa

from kaflow_engine.model.columns import Column
from kaflow_engine.operators.row_errors.bad_record import BadRecord
from kaflow_engine.operators.rows.schemas import ORIGIN, TRIGGER

KNOWN = ("members", "raw", "counted", "forced")
"""What travels with rows beside where they come from, unless the operator leaves it open."""


def position_of(rows: pa.Table) -> dict[str, pa.ChunkedArray]:
    """Return the columns that say where rows come from, and those of KNOWN that they have."""
    known = [name for name in KNOWN if name in rows.column_names]
    return {name: rows[name] for name in (*TRIGGER, *ORIGIN, "ts", *known)}


@dataclass(frozen=True, slots=True, kw_only=True)
class Leaving:
    """Rows that leave an operator."""

    rows: pa.Table
    """`rn`, and whatever `typed` and `packed` read."""
    typed: str
    """SELECT of `rn` and the columns `alias.column` from `rows`."""
    packed: Callable[[Sequence[Column]], str]
    """Columns to a SELECT of `rn` and `payload`, those columns as one packed row, from `rows`."""
    placed: Callable[[pa.Table], pa.Table]
    """Adds to rows with `rn` where they come from: TRIGGER, ORIGIN, `ts`, what is known of
    KNOWN, and `part`, where they are without an exchange."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Taken:
    """What became of rows that were handed on; those that are in no part were filtered."""

    rows: pa.Table
    """Schema EXCHANGE: rows for later levels."""
    passed: pa.Table
    """`rn` of the rows that were taken, and what `placed` adds; of a projection `out_key` and
    `value`, too."""
    bit: int
    """What that is to their driving records, as a bit (see `outcomes`)."""
    bad: tuple[BadRecord, ...]


class HandOn(Protocol):
    """Gives rows to the operator that takes them in the same task."""

    def __call__(self, leaving: Leaving) -> Taken:
        """Hand rows on."""
        ...
