"""Changes of a table as one reader sees them: what it makes of the rows before and after."""

from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from kaflow_engine.operators.handover import Changes, Taken, position_of
from kaflow_engine.operators.outcomes.outcomes import EMITTED
from kaflow_engine.operators.output.unnest import PLACES
from kaflow_engine.operators.row_errors.bad_record import BadRecord
from kaflow_engine.operators.row_errors.quarantine import BadRow, bad_records
from kaflow_engine.operators.rows.partitioning import first_parts
from kaflow_engine.operators.rows.reports import exchange_rows
from kaflow_engine.operators.rows.row_text import columns_of, unpack
from kaflow_engine.state.binary_columns import fixed, joined

_Numbers = np.ndarray[Any, np.dtype[np.int64]]
_NONE = -1


@dataclass(frozen=True, slots=True)
class Moves:
    """What leaves a reader because of changes, in their order: rows that go, and rows that come."""

    numbers: pa.Array
    """Of each the `rn` of its change."""
    rows: pa.Table
    """What the reader made of the row."""
    comes: pa.BooleanArray
    """Of each whether it comes; it goes before another one comes for it."""
    changes: pa.Array
    """Of each the place of its change."""
    replaced: pa.BooleanArray
    """Of each whether the reader shows a row before and one after the change."""

    def coming(self, name: str) -> pa.Array:
        """Return a column of the rows, null for those that go."""
        column = self.rows[name].combine_chunks()
        return pc.if_else(self.comes, column, pa.scalar(None, column.type))


@dataclass(frozen=True, slots=True, kw_only=True)
class BeforeAfter:
    """The rows of changes that a reader looks at, each once: a row that another one of its group
    replaces is computed as the row after only."""

    changes: Changes
    rows: pa.Table
    """`rn`, from 0, and `row`, packed: the rows after, then those before the first changes."""
    had: _Numbers
    """Of each change the `rn` of the row before; negative: there is none."""
    has: _Numbers
    """Of each change the `rn` of the row after; negative: there is none."""

    @property
    def typed(self) -> str:
        """SELECT of `rn` and the columns of the changes from `rows`."""
        values = ", ".join(["rn", *columns_of("l", self.changes.columns)])
        return f"SELECT {values} FROM (SELECT rn, {unpack('row')} AS l FROM rows)"

    def moves(self, made: pa.Table, key: str | None = None, *, coalesced: bool = False) -> Moves:
        """Return what leaves a reader.

        Args:
            made: `rn` and what the reader makes of these rows; of others it shows nothing.
            key: A column: a row that comes replaces the one before where this is equal, so that
                the latter does not go.
            coalesced: Of each group only what is left at the end of its changes leaves, with the
                last of them.
        """
        places = np.full(self.rows.num_rows + 1, _NONE)  # the last one is that of no row
        places[made["rn"].to_numpy()] = np.arange(made.num_rows)
        had, has = places[self.had], places[self.has]
        if coalesced:
            had, has = self._at_the_end(had, has)
        columns = [name for name in made.column_names if name != "rn"]
        same = {name: _equal(made[name].combine_chunks(), had, has) for name in columns}
        equal = np.logical_and.reduce([(had < 0) == (has < 0), *same.values()])
        goes = (had >= 0) & ~equal
        if key is not None:
            goes &= (has < 0) | ~same[key]
        comes = (has >= 0) & ~equal
        changes = np.concatenate([np.flatnonzero(goes), np.flatnonzero(comes)])
        late = np.arange(len(changes)) >= np.count_nonzero(goes)
        order = np.lexsort((late, changes))
        changes, late = changes[order], late[order]
        return Moves(
            numbers=self.changes.rows["rn"].combine_chunks().take(pa.array(changes)),
            rows=made.take(pa.array(np.where(late, has[changes], had[changes]))),
            comes=pa.array(late),
            changes=pa.array(changes),
            replaced=pa.array((had[changes] >= 0) & (has[changes] >= 0)),
        )

    def unnested(self, made: pa.Table, lists: int) -> tuple["BeforeAfter", pa.Table]:
        """Return what a reader looks at whose rows part: each place in a list is a row of its own,
        before and after a change.

        Args:
            made: `rn`, `$places` and what the reader makes of these rows.
            lists: How many part each row.

        Returns:
            Changes of such rows, whose groups end with the place; and `made` as these number it.
        """
        numbers = made["rn"].to_numpy()
        flat = made[PLACES].combine_chunks().flatten().to_numpy()
        parts = flat.reshape(made.num_rows, lists).astype(np.int64)
        places, of_rows = np.unique(parts, axis=0, return_inverse=True)
        of_rows = of_rows.reshape(-1)  # some versions of numpy keep the other axis
        order = np.argsort(numbers, kind="stable")
        pairs = [
            _parts_of(owners, numbers[order], order, of_rows, len(places))
            for owners in (self.had, self.has)
        ]
        both = np.unique(np.concatenate([keys for keys, _ in pairs]))
        had, has = np.full(len(both), _NONE), np.full(len(both), _NONE)
        for found, (keys, rows) in zip((had, has), pairs, strict=True):
            found[np.searchsorted(both, keys)] = rows
        changes, at = both // max(1, len(places)), both % max(1, len(places))
        rows = self.changes.rows.take(pa.array(changes))
        suffix = fixed(places[at].astype(">i8")) if len(at) else pa.array([], pa.binary())
        groups = joined(rows["group"].combine_chunks(), suffix)
        parted = replace(
            self,
            changes=replace(
                self.changes,
                rows=rows.set_column(rows.column_names.index("group"), "group", groups),
            ),
            rows=pa.table({"rn": np.arange(made.num_rows)}),
            had=had,
            has=has,
        )
        plain = made.drop_columns([PLACES])
        return parted, plain.set_column(
            plain.column_names.index("rn"), "rn", pa.array(np.arange(made.num_rows))
        )

    def every(self, made: pa.Table) -> Moves:
        """Return the rows after that a reader shows, whether they are new or not."""
        places = np.full(self.rows.num_rows + 1, _NONE)
        places[made["rn"].to_numpy()] = np.arange(made.num_rows)
        has = places[self.has]
        changes = np.flatnonzero(has >= 0)
        return Moves(
            numbers=self.changes.rows["rn"].combine_chunks().take(pa.array(changes)),
            rows=made.take(pa.array(has[changes])),
            comes=pa.array(np.ones(len(changes), np.bool_)),
            changes=pa.array(changes),
            replaced=pa.array(places[self.had][changes] >= 0),
        )

    def _at_the_end(self, had: _Numbers, has: _Numbers) -> tuple[_Numbers, _Numbers]:
        """Return rows before and after of the last change of each group; of others none."""
        groups = self.changes.rows["group"].combine_chunks().dictionary_encode().indices.to_numpy()
        _, first, of_group = np.unique(groups, return_index=True, return_inverse=True)
        last = np.empty(len(first), np.int64)
        last[of_group] = np.arange(len(groups))  # of duplicates numpy keeps the last write
        before, after = np.full(len(groups), _NONE), np.full(len(groups), _NONE)
        before[last], after[last] = had[first], has[last]
        return before, after

    def taken(
        self,
        moves: Moves,
        key: pa.BinaryArray,
        failed: Iterable[BadRow],
        *,
        partitions: int,
        **columns: Any,
    ) -> Taken:
        """Return what an operator takes, of rows that travel by their key.

        Args:
            moves: The rows.
            key: Of each the key behind its shard byte.
            failed: The rows on which the SQL of the reader failed.
            partitions: Of the state.
            columns: What else travels, of schema EXCHANGE.
        """
        placed = self.changes.placed(pa.table({"rn": moves.numbers}))
        rows = exchange_rows(
            placed.num_rows,
            part=pa.array(first_parts(key, partitions)),
            key=key,
            **columns,
            **position_of(placed),
        )
        return Taken(
            rows=rows,
            numbers=pa.chunked_array([], pa.int64()),
            passed=placed,
            bit=EMITTED,
            bad=tuple(self.bad_of(bad_records(failed))),
        )

    def bad_of(self, failed: Iterable[BadRecord]) -> list[BadRecord]:
        """Return the changes whose rows after are those that failed."""
        owners = self.changes.rows["rn"].take(pa.array(np.flatnonzero(self.has >= 0)))
        return [
            replace(one, row=owners[one.row].as_py()) for one in failed if one.row < len(owners)
        ]


def before_after(changes: Changes) -> BeforeAfter:
    """Return the rows after, and of each group the row before its first change."""
    rows = changes.rows
    groups = rows["group"].combine_chunks().dictionary_encode().indices.to_numpy()
    order = np.argsort(groups, kind="stable")
    follows = order[1:][groups[order[1:]] == groups[order[:-1]]]
    before = np.full(len(groups), _NONE)
    before[follows] = order[:-1][groups[order[1:]] == groups[order[:-1]]]
    after = rows["new"].is_valid().to_numpy()
    begins = rows["old"].is_valid().to_numpy() & (before < 0)
    has = np.where(after, np.cumsum(after) - 1, _NONE)
    had = np.where(begins, np.count_nonzero(after) + np.cumsum(begins) - 1, _NONE)
    had[follows] = has[before[follows]]
    chunks = [*rows["new"].filter(pa.array(after)).chunks]
    chunks += rows["old"].filter(pa.array(begins)).chunks
    both = pa.chunked_array(chunks, pa.string())
    numbered = pa.table({"rn": pa.array(np.arange(len(both))), "row": both})
    return BeforeAfter(changes=changes, rows=numbered, had=had, has=has)


def _parts_of(
    owners: _Numbers, numbers: _Numbers, order: _Numbers, of_rows: _Numbers, count: int
) -> tuple[_Numbers, _Numbers]:
    """Return the rows that were made of the row of each change: change and place as one number,
    and the row.

    Args:
        owners: Of each change the number of its row; negative: there is none.
        numbers: Of the rows that were made, in ascending order.
        order: Where they are.
        of_rows: Of each the number of its place.
        count: Of places.
    """
    first = np.searchsorted(numbers, owners, "left")
    lengths = np.searchsorted(numbers, owners, "right") - first
    changes = np.repeat(np.arange(len(owners)), lengths)
    offsets = np.arange(len(changes)) - np.repeat(np.cumsum(lengths) - lengths, lengths)
    rows = order[np.repeat(first, lengths) + offsets]
    return changes * count + of_rows[rows], rows


def _equal(column: pa.Array, had: _Numbers, has: _Numbers) -> Any:
    """Tell of each change whether a column is the same before and after; NULL equals NULL."""
    before = column.take(pa.array(had, mask=had < 0))
    now = column.take(pa.array(has, mask=has < 0))
    neither = pc.invert(pc.or_(pc.is_valid(before), pc.is_valid(now)))
    same = pc.or_(pc.fill_null(pc.equal(before, now), False), neither)
    return same.to_numpy(zero_copy_only=False)
