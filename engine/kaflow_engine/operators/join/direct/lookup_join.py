"""Driving rows that one look at the dimensions settles: they are sent on, or wait, without tables.

Such are the rows of a join over current dimension values only, unless the batch brings their key
several dimension records, or one at their own place. All others take the long way in `keyed_join`.
"""

from collections import Counter
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from kaflow_engine.flow.edges import Rows
from kaflow_engine.formats.pick import keep
from kaflow_engine.operators.join.direct.moved import (
    AMONG,
    BEFORE,
    BEHIND,
    Mask,
    Moved,
    Stands,
    stands,
)
from kaflow_engine.operators.join.emit import leave
from kaflow_engine.operators.join.retain import keep_waiting
from kaflow_engine.operators.join.temporal_join import current_texts
from kaflow_engine.operators.join.workspace import JoinWorkspace
from kaflow_engine.operators.outcomes.outcomes import count_fates
from kaflow_engine.operators.row_errors.quarantine import guarded
from kaflow_engine.operators.rows.layout import join_rows
from kaflow_engine.operators.rows.schemas import DRIVING


@dataclass(frozen=True, slots=True, kw_only=True)
class Settled:
    """What became of rows at their own places."""

    rows: list[pa.Table]
    """Travelling rows, schema EXCHANGE."""
    left: pa.Table
    """Rows of the join that take another way."""
    pending: pa.Table
    """Rows of the join that wait already when the record of their key comes."""


def settle_at_once(
    work: JoinWorkspace, here: pa.Table, moved: Moved, counters: Counter[str]
) -> Settled:
    """Send on the rows that are complete, and keep those that are not for later batches.

    Args:
        work: The join; no table is needed.
        here: The join's rows, schema EXCHANGE.
        moved: The dimension records among them.
        counters: Takes the classes of the rows.
    """
    nothing = here.slice(0, 0)
    if not can_settle_at_once(work):
        return Settled(rows=[], left=here, pending=nothing)
    standing = stands(here, moved)
    easy = _easy(work, here, standing)
    if not easy.any():
        return Settled(rows=[], left=here, pending=nothing)
    standing = standing[easy]
    some = keep(here, pa.array(easy))
    rows = _looked_up(work, some, moved, standing)
    counted, pending = rows["counted"], nothing
    left = ~easy
    if work.can_wait:
        complete, failed = complete_rows(work, rows)
        waits = ~complete & ~failed & _may_wait(work, rows)
        early = waits & (standing == BEFORE)
        wait(work, rows.filter(pa.array(waits & ~early)), counters)
        pending = some.filter(pa.array(early))
        left[np.flatnonzero(easy)] = ~complete & ~waits
        rows = keep(rows, pa.array(complete))
    elif not work.driving.waits:
        complete, _ = complete_rows(work, rows)
        counters["filtered"] += pc.sum(counted.filter(pa.array(~complete))).as_py() or 0
        rows = keep(rows, pa.array(complete))
    outcome = leave(work, rows)
    count_fates(counters, outcome.fates, counted)
    return Settled(rows=[outcome.rows], left=here.filter(pa.array(left)), pending=pending)


def can_settle_at_once(work: JoinWorkspace) -> bool:
    """Return whether there is one value for each row, so that it needs no tables."""
    return only_looks_up(work) and not work.several


def only_looks_up(work: JoinWorkspace) -> bool:
    """Return whether only what dimensions are now is looked at, and rows end here or go on.

    Rows that may be formed again, and rows of which a ledger keeps account, take the long way.
    """
    sides = work.join.sides
    current = all(side.role == "dimension" and side.lookup != "as_of" for side in sides)
    return current and not (work.final or work.driving.reemit or work.ledger is not None)


def _easy(work: JoinWorkspace, here: pa.Table, standing: Stands) -> Mask:
    """Which rows are driving rows that come for the first time, and see one value of each side."""
    easy = pc.and_not(
        pc.equal(here["kind"], DRIVING),
        pc.fill_null(pc.or_kleene(here["doomed"], here["forced"]), False),
    )
    if isinstance(work.join.rows, Rows) and not work.of_groups:
        easy = pc.and_(easy, _fresh(work, here))
    return easy.to_numpy() & (standing != AMONG)


def _fresh(work: JoinWorkspace, here: pa.Table) -> pa.ChunkedArray:
    """Which rows their own driving record has triggered."""
    own = pc.and_(
        pc.equal(here["d_batch"], work.batch.batch),
        pc.and_(pc.equal(here["t_phase"], 1), pc.equal(here["t_topic"], work.topic.index)),
    )
    same = pc.and_(pc.equal(here["t_part"], here["d_part"]), pc.equal(here["t_off"], here["d_off"]))
    return pc.fill_null(pc.and_(own, same), False)


def _looked_up(work: JoinWorkspace, rows: pa.Table, moved: Moved, standing: Stands) -> pa.Table:
    """Return rows as `leave` wants them, with the value of each side at their places."""
    numbers = pa.array(np.arange(rows.num_rows))
    keys = rows["key"].combine_chunks().dictionary_encode()
    columns = {"rn": numbers, "did": numbers, "d": rows["payload"]}
    for j in work.dimensions:
        columns[f"s{j}"] = current_texts(work, j, keys.dictionary).take(keys.indices)
    if (standing == BEHIND).any():
        behind, records = pa.array(standing == BEHIND), moved.of(rows)
        for j in work.dimensions:
            new = pc.fill_null(pc.and_(behind, pc.equal(records["side"], j)), False)
            columns[f"s{j}"] = pc.if_else(new, records["payload"], columns[f"s{j}"])
    for name in rows.column_names:
        columns.setdefault(name, rows[name])
    return pa.table(columns)


def complete_rows(work: JoinWorkspace, rows: pa.Table) -> tuple[Mask, Mask]:
    """Which rows, as `leave` wants them, have all INNER sides and required columns, and on which
    the SQL fails."""
    complete = np.ones(rows.num_rows, np.bool_)
    failed = np.zeros(rows.num_rows, np.bool_)
    for i in work.join.inner:
        complete &= rows[f"s{i}"].is_valid().to_numpy()
    if work.join.require is not None:
        typed = join_rows(work.join, work.batch.batch_time)
        sides = [f"s{j}" for j in work.dimensions]
        found, bad = guarded(
            f"SELECT rn FROM ({typed}) WHERE {work.join.require}", rows.select(["rn", "d", *sides])
        )
        required = np.zeros(rows.num_rows, np.bool_)
        required[found["rn"].to_numpy()] = True
        complete &= required
        failed[[row.row for row in bad]] = True
    return complete, failed


def _may_wait(work: JoinWorkspace, rows: pa.Table) -> Mask:
    """Which rows have a key and are not late."""
    late = rows["ts"].to_numpy() + work.driving.ttl < work.horizon
    return rows["key"].is_valid().to_numpy() & ~late


def wait(work: JoinWorkspace, rows: pa.Table, counters: Counter[str]) -> None:
    """Keep rows, as `leave` wants them, for later batches."""
    if not rows.num_rows:
        return
    due = pc.add(rows["ts"], work.driving.ttl)
    flags = pa.array(np.zeros(rows.num_rows, np.int64))
    keep_waiting(work, rows.append_column("due", due).append_column("flags", flags))
    counters["waiting"] += pc.sum(rows["counted"]).as_py()
