"""How operators of one task hand rows to each other: typed, without the form of the exchange."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Literal, Protocol

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


def placed(found: pa.Table, known: pa.Table) -> pa.Table:
    """Put beside rows what is known of them, by `rn`."""
    places = pc.index_in(found["rn"], value_set=known["rn"].combine_chunks())
    rows = known.take(places)
    for name in known.column_names:
        if name != "rn":
            found = found.append_column(name, rows[name])
    return found


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
    """`rn` of the rows that were taken, each once, and what `placed` adds; of projections for sinks
    `out_key`, `value` and `headers`, too."""
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
    shared = [n for n in each[0].passed.column_names if all(_has(taken, n) for taken in each)]
    seen = failed
    for taken in each:
        kept = pc.invert(pc.is_in(taken.numbers, failed))
        rows.append(taken.rows.filter(kept))
        numbers.append(taken.numbers.filter(kept))
        first = taken.passed.filter(pc.invert(pc.is_in(taken.passed["rn"], seen)))
        passed.append(first.select(shared))
        seen = pa.concat_arrays([seen, *first["rn"].chunks])
    return Taken(
        rows=pa.concat_tables(rows),
        numbers=pa.chunked_array([chunk for each in numbers for chunk in each.chunks], pa.int64()),
        passed=pa.concat_tables(passed),
        bit=each[0].bit,
        bad=tuple(bad.values()),
    )


def _has(taken: Taken, name: str) -> bool:
    return name in taken.passed.column_names


@dataclass(frozen=True, slots=True, kw_only=True)
class Changes:
    """Changes of a table that leave an operator: of each the row before and the row after."""

    rows: pa.Table
    """`rn`; `group`, what tells groups apart (binary); `old` and `new`, a packed row of `columns`
    each (string), null where there is none. The rows of one group stand in the order in which they
    leave; `old` is what was sent last, and counts in the first one of a group only. Where the row
    before `stays`, all rows of a group have the same `old`."""
    columns: Sequence[Column]
    """Named `alias.column`."""
    placed: Callable[[pa.Table], pa.Table]
    """As of Leaving."""
    because: Literal["changed", "closed", "forgotten"] = "changed"
    """Closed: the rows, each `old` and `new`, are the last of their groups, and what is held of
    them leaves. Forgotten: groups are no more for the operators that read them; to sinks nothing
    goes."""
    stays: bool
    """Where a reader fails on a row, the one before it stays with all readers, as a result of a
    group does; else it is for this reader as if there were no row."""

    def without(self, bad: Iterable[BadRecord]) -> "Changes":
        """Return the changes without some of them, where the row before stays."""
        numbers = pa.array([one.row for one in bad], pa.int64())
        return replace(self, rows=self.rows.filter(pc.invert(pc.is_in(self.rows["rn"], numbers))))


def of_all(each: Sequence[Taken]) -> Taken:
    """Return what became of changes that several readers were handed, each by itself."""
    assert each, "a table that nothing reads"
    bad: dict[int, BadRecord] = {}
    for one in (one for taken in each for one in taken.bad):
        bad.setdefault(one.row, one)
    return Taken(
        rows=pa.concat_tables(taken.rows for taken in each),
        numbers=pa.chunked_array([], pa.int64()),
        passed=each[-1].passed,
        bit=each[-1].bit,
        bad=tuple(bad.values()),
    )


class HandTo(Protocol):
    """Gives rows to some of the operators that may take them in the same task."""

    def __call__(self, readers: Sequence[TakesRows], leaving: Leaving) -> Taken:
        """Hand rows to each of them."""
        ...


class HandChanges(Protocol):
    """Gives changes of a table to the operators that take them in the same task."""

    def __call__(self, changes: Changes) -> Taken:
        """Hand changes on; `bad` of what it returns names changes that were not sent, by `rn`."""
        ...


class HandOn(Protocol):
    """Gives rows to the operator that takes them in the same task."""

    def __call__(self, leaving: Leaving) -> Taken:
        """Hand rows on."""
        ...
