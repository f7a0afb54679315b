"""Groups that are over: forgotten, and where the result is final, sent."""

from collections.abc import Sequence

import numpy as np
import pyarrow as pa

from kaflow_engine.flow.graph import target_of
from kaflow_engine.operators.aggregate.calculate import (
    calculate,
    keeps_rows,
)
from kaflow_engine.operators.aggregate.entries import Group, end_of, read_entry
from kaflow_engine.operators.aggregate.leave import append_rows, parts, result_letters
from kaflow_engine.operators.aggregate.nodes import Node
from kaflow_engine.operators.aggregate.workspace import Change, Work, no_rows
from kaflow_engine.operators.handover import HandOn
from kaflow_engine.operators.row_errors.bad_record import BadRecord
from kaflow_engine.operators.rows.key_ranks import key_ranks
from kaflow_engine.operators.rows.schemas import MEMBERS, NO_RECORD


def close(work: Work, hand_on: HandOn) -> list[pa.Table]:
    """Forget the groups that are over, and send those that are final; schema EXCHANGE."""
    found: list[pa.Table] = []
    looks = work.batch.may_be_due(work.chain.number)
    for over in work.groups.over(work.watermark, looks=looks):
        if not over:
            continue
        kept: dict[bytes, dict[bytes, str]] = {}
        if keeps_rows(work.aggregate):
            kept = work.groups.rows([entry for entry, _, _ in over])
            for entry, rows in kept.items():
                for tail in rows:
                    work.groups.keep(entry, tail, None)
        if work.aggregate.leaves == "closed":
            found += _sent(work, over, kept, hand_on)
    return found


def _sent(
    work: Work,
    over: Sequence[tuple[bytes, Group, int]],
    kept: dict[bytes, dict[bytes, str]],
    hand_on: HandOn,
) -> list[pa.Table]:
    aggregate = work.aggregate
    nodes = [_node(work, entry, group) for entry, group, _ in over]
    found = calculate(aggregate, nodes, range(len(nodes)), no_rows(), kept, results=True)
    bad = [
        BadRecord(row=place, phase="result", error=error, message=message)
        for place, (error, message) in found.failed.items()
    ]
    known = _places(work, nodes, [at for _, _, at in over])
    leaving = pa.table(
        {
            "rn": pa.array(list(found.rows), pa.int64()),
            "row": pa.array(list(found.rows.values()), pa.string()),
        }
    )
    tables: list[pa.Table] = []
    if leaving.num_rows:
        taken = hand_on(append_rows(work, leaving, known))
        tables.append(taken.rows)
        bad += taken.bad
    if bad:
        tables.append(result_letters(work, [(_change(nodes[b.row]), b) for b in bad]))
    return tables


def _node(work: Work, entry: bytes, group: Group) -> Node:
    key, start = read_entry(work.aggregate, entry)
    end = end_of(work.aggregate, start, group.last)
    return Node(entry=entry, key=key, start=start, end=end, ts=group.ts, stored=group)


def _change(node: Node) -> Change:
    return Change(
        entry=node.entry,
        key=node.key,
        start=node.start,
        end=node.end,
        ts=node.ts,
        by=NO_RECORD,
        row=None,
    )


def _places(work: Work, nodes: Sequence[Node], over: Sequence[int]) -> pa.Table:
    """Return where rows of closed windows stand: by when they fell due, then by their keys."""
    count = len(nodes)
    times = np.array(over, np.int64) + 1 + work.aggregate.delay
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
            "rn": pa.array(range(count), pa.int64()),
            **{name: pa.repeat(pa.scalar(v, pa.int64()), count) for name, v in constants.items()},
            "t_time": times,
            "d_time": times,
            "members": _ranks(work, nodes),
            "ts": pa.array([node.ts for node in nodes], pa.int64()),
            "part": parts(work, [node.key for node in nodes]),
            "counted": pa.repeat(False, count),
            "forced": pa.repeat(False, count),
        }
    )


def _ranks(work: Work, nodes: Sequence[Node]) -> pa.Array:
    """Return numbers that stand in the order of keys, then starts."""
    ranks = key_ranks(work.aggregate.keys, [node.key for node in nodes])
    starts = ([] if node.start is None else [node.start] for node in nodes)
    return pa.array([[*rank, *start] for rank, start in zip(ranks, starts, strict=True)], MEMBERS)
