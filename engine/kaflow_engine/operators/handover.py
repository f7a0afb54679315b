"""How operators of one task hand rows to each other: typed, without the form of the exchange."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Protocol

import pyarrow as pa
import pyarrow.compute as pc

from kaflow_engine.flow.operators import TakesRows
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
    numbers: pa.ChunkedArray
    """The `rn` of each of `rows`; several have the same one where lists were unnested."""
    passed: pa.Table
    """`rn` of the rows that were taken, each once, and what `placed` adds; of a projection
    `out_key` and `value`, too."""
    bit: int
    """What that is to their driving records, as a bit (see `outcomes`)."""
    bad: tuple[BadRecord, ...]


def by_all_or_none(each: Sequence[Taken]) -> Taken:
    """Return what became of rows that several operators were handed.

    A row on which the SQL of one fails goes to none of them: its record is a dead letter, and when
    it is sent again, all of them get it. A row is filtered where none took it.
    """
    if len(each) == 1:
        return each[0]
    bad: dict[int, BadRecord] = {}
    for taken in each:
        for one in taken.bad:
            bad.setdefault(one.row, one)
    failed = pa.array(list(bad), pa.int64())
    rows: list[pa.Table] = []
    numbers: list[pa.ChunkedArray] = []
    passed: list[pa.Table] = []
    seen = failed
    for taken in each:
        kept = pc.invert(pc.is_in(taken.numbers, failed))
        rows.append(taken.rows.filter(kept))
        numbers.append(taken.numbers.filter(kept))
        first = taken.passed.filter(pc.invert(pc.is_in(taken.passed["rn"], seen)))
        passed.append(first)
        seen = pa.concat_arrays([seen, *first["rn"].chunks])
    return Taken(
        rows=pa.concat_tables(rows),
        numbers=pa.chunked_array([chunk for each in numbers for chunk in each.chunks], pa.int64()),
        passed=pa.concat_tables(passed),
        bit=each[0].bit,
        bad=tuple(bad.values()),
    )


class HandTo(Protocol):
    """Gives rows to some of the operators that may take them in the same task."""

    def __call__(self, readers: Sequence[TakesRows], leaving: Leaving) -> Taken:
        """Hand rows to each of them."""
        ...


class HandOn(Protocol):
    """Gives rows to the operator that takes them in the same task."""

    def __call__(self, leaving: Leaving) -> Taken:
        """Hand rows on."""
        ...
