"""Groups that are over: they are forgotten, and those that are final leave."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from kaflow_engine.flow.graph import target_of
from kaflow_engine.flow.windows import SessionWindow
from kaflow_engine.operators.aggregate.calculate import calculate, computed, keeps_rows
from kaflow_engine.operators.aggregate.entries import (
    Group,
    end_of,
    overs_at,
    read_entries,
    read_entry,
    read_group_values,
)
from kaflow_engine.operators.aggregate.groups import Over
from kaflow_engine.operators.aggregate.leave import append_rows, result_letters
from kaflow_engine.operators.aggregate.nodes import Node
from kaflow_engine.operators.aggregate.windows import Numbers, ends_of
from kaflow_engine.operators.aggregate.workspace import Change, Work, no_rows
from kaflow_engine.operators.handover import HandOn
from kaflow_engine.operators.row_errors.bad_record import BadRecord
from kaflow_engine.operators.row_errors.quarantine import DATA_ERRORS
from kaflow_engine.operators.rows.key_ranks import key_ranks
from kaflow_engine.operators.rows.partitioning import first_parts
from kaflow_engine.operators.rows.schemas import NO_RECORD


def close(work: Work, hand_on: HandOn) -> list[pa.Table]:
    """Forget the groups that are over, and send those that are final; schema EXCHANGE."""
    found = _closed(work, work.groups.over_already(work.watermark), hand_on)
    looks = work.batch.may_be_due(work.chain.number)
    for due in work.groups.due(work.watermark) if looks else ():
        at_once = _close_at_once(work, due, hand_on)
        if at_once is None:
            at_once = _closed(work, work.groups.over(due, work.watermark), hand_on)
        found += at_once
    return found


def _closed(work: Work, over: Sequence[Over], hand_on: HandOn) -> list[pa.Table]:
    """Send groups that are forgotten, where they are final, and forget their rows."""
    if not over:
        return []
    kept: dict[bytes, dict[bytes, str]] = {}
    if keeps_rows(work.aggregate):
        kept = work.groups.rows([entry for entry, _, _ in over])
        for entry, rows in kept.items():
            for tail in rows:
                work.groups.keep(entry, tail, None)
    if work.aggregate.leaves != "closed":
        return []
    nodes = [_node(work, *each) for each in over]
    made = calculate(work.aggregate, nodes, range(len(nodes)), no_rows(), kept, results=True)
    bad = [
        BadRecord(row=place, phase="result", error=error, message=message)
        for place, (error, message) in made.failed.items()
    ]
    leaving = pa.table(
        {
            "rn": pa.array(list(made.rows), pa.int64()),
            "row": pa.array(list(made.rows.values()), pa.string()),
        }
    )
    gone = _Gone(
        keys=pa.array([node.key for node in nodes], pa.binary()),
        starts=np.array([node.start or 0 for node in nodes], np.int64),
        ends=np.array([node.end or 0 for node in nodes], np.int64),
        ts=np.array([node.ts for node in nodes], np.int64),
        over=np.array([at for _, _, at in over], np.int64),
    )
    return _sent(work, gone, leaving, bad, hand_on)


def _close_at_once(
    work: Work, due: list[tuple[int, bytes]], hand_on: HandOn
) -> list[pa.Table] | None:
    """Forget the groups that are due, and send them, without a look at each of them.

    None: they must be looked at, and nothing has happened. Some of them are not over, are kept with
    their rows, or have a result that fails.
    """
    aggregate, groups = work.aggregate, work.groups
    if isinstance(aggregate.window, SessionWindow) or keeps_rows(aggregate):
        return None
    entries = pa.array([entry for _, entry in due], pa.binary())
    if not groups.is_untouched or len(pc.unique(entries)) < len(entries):
        return None
    values = groups.values(entries)
    stored = None if values.null_count else read_group_values(values)
    if stored is None:
        return None
    keys, starts = read_entries(aggregate, entries)
    ends = starts if aggregate.window is None else ends_of(aggregate.window, starts)
    over = overs_at(aggregate, stored.ts, ends)
    if len(over) < len(entries) or over.max() >= work.watermark:
        return None
    if aggregate.leaves != "closed":
        groups.forget(due)
        return []
    gone = _Gone(keys=keys, starts=starts, ends=ends, ts=stored.ts, over=over)
    try:
        rows = _rows(work, gone, stored.columns)
    except DATA_ERRORS:
        return None
    groups.forget(due)
    return _sent(work, gone, rows, [], hand_on)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Gone:
    """Groups that are over, column by column."""

    keys: pa.BinaryArray
    """Grouping values behind the shard byte."""
    starts: Numbers
    ends: Numbers
    ts: Numbers
    over: Numbers
    """The times behind which they are."""


def _rows(work: Work, gone: _Gone, columns: pa.StringArray) -> pa.Table:
    """Compute results: `rn` and `row`.

    Raises:
        DATA_ERRORS: Some of them fail.
    """
    numbers = pa.array(np.arange(len(gone.keys)))
    infos = pa.table(
        {
            "v": numbers,
            "keys": pc.binary_slice(gone.keys, 1, 1 << 31).cast(pa.string()),
            "began": gone.starts,
            "ended": gone.ends,
        }
    )
    olds = pa.table({"v": numbers, "g": numbers, "columns": columns})
    news = no_rows().select(["kind", "payload"])
    for name in ("v", "g"):
        news = news.append_column(name, pa.array([], pa.int64()))
    found = computed(work.aggregate, infos, olds, news, results=True)
    return pa.table({"rn": numbers, "row": found["row"]})


def _sent(
    work: Work, gone: _Gone, rows: pa.Table, bad: list[BadRecord], hand_on: HandOn
) -> list[pa.Table]:
    tables: list[pa.Table] = []
    if rows.num_rows:
        taken = hand_on(append_rows(work, rows, _places(work, gone)))
        tables.append(taken.rows)
        bad = [*bad, *taken.bad]
    if bad:
        tables.append(result_letters(work, [(_change(gone, b.row), b) for b in bad]))
    return tables


def _node(work: Work, entry: bytes, group: Group, at: int) -> Node:
    key, start = read_entry(work.aggregate, entry)
    end = end_of(work.aggregate, start, group.last)
    return Node(entry=entry, key=key, start=start, end=end, ts=group.ts, stored=group)


def _change(gone: _Gone, place: int) -> Change:
    key: bytes = gone.keys[place].as_py()
    return Change(
        entry=key,
        key=key,
        start=int(gone.starts[place]),
        end=int(gone.ends[place]),
        ts=int(gone.ts[place]),
        by=NO_RECORD,
        row=None,
    )


def _places(work: Work, gone: _Gone) -> pa.Table:
    """Return where rows of closed windows stand: by when they fell due, then by their keys."""
    count = len(gone.keys)
    times = gone.over + 1 + work.aggregate.delay
    constants = {
        "t_phase": 0,
        "t_role": 0,
        "t_topic": target_of(work.flow, work.aggregate),
        "t_part": 0,
        "t_off": 0,
        "d_batch": work.batch.batch,
        "d_part": NO_RECORD,
        "d_off": NO_RECORD,
    }
    return pa.table(
        {
            "rn": pa.array(np.arange(count)),
            **{name: pa.repeat(pa.scalar(v, pa.int64()), count) for name, v in constants.items()},
            "t_time": times,
            "d_time": times,
            "members": _ranks(work, gone),
            "ts": gone.ts,
            "part": first_parts(gone.keys, work.flow.partitions),
            "counted": pa.repeat(False, count),
            "forced": pa.repeat(False, count),
        }
    )


def _ranks(work: Work, gone: _Gone) -> pa.ListArray:
    """Return numbers that stand in the order of keys, then starts."""
    ranks = key_ranks(work.aggregate.keys, gone.keys)
    offsets = ranks.offsets.to_numpy()
    numbers = np.insert(ranks.values.to_numpy(), offsets[1:], gone.starts)
    places = (offsets + np.arange(len(offsets))).astype(np.int32)
    return pa.ListArray.from_arrays(pa.array(places), pa.array(numbers))
