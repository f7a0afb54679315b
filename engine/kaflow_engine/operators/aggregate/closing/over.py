"""Groups whose time is up, column by column: their results, and where their rows stand."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from kaflow_engine.flow.graph import target_of
from kaflow_engine.operators.aggregate.calculate import (
    Results,
    calculate,
)
from kaflow_engine.operators.aggregate.entries import end_of, read_entry
from kaflow_engine.operators.aggregate.groups import Over
from kaflow_engine.operators.aggregate.nodes import Node
from kaflow_engine.operators.aggregate.windows import Numbers
from kaflow_engine.operators.aggregate.workspace import Change, Work, no_rows
from kaflow_engine.operators.row_errors.bad_record import BadRecord
from kaflow_engine.operators.rows.key_ranks import key_ranks
from kaflow_engine.operators.rows.partitioning import first_parts
from kaflow_engine.operators.rows.schemas import NO_RECORD


@dataclass(frozen=True, slots=True, kw_only=True)
class OverGroups:
    """Groups that are over, or whose windows have ended."""

    keys: pa.BinaryArray
    """Grouping values behind the shard byte."""
    starts: Numbers
    ends: Numbers
    ts: Numbers
    over: Numbers
    """The times behind which they are."""

    def change(self, place: int) -> Change:
        """Return one of them, for a dead letter about its result."""
        key: bytes = self.keys[place].as_py()
        return Change(
            entry=key,
            key=key,
            start=int(self.starts[place]),
            end=int(self.ends[place]),
            ts=int(self.ts[place]),
            by=NO_RECORD,
            row=None,
        )


def over_groups(work: Work, over: Sequence[Over]) -> tuple[OverGroups, list[Node]]:
    """Return groups column by column, and as nodes."""
    nodes: list[Node] = []
    for entry, group, _ in over:
        key, start = read_entry(work.aggregate, entry)
        end = end_of(work.aggregate, start, group.last)
        nodes.append(Node(entry=entry, key=key, start=start, end=end, ts=group.ts, stored=group))
    found = OverGroups(
        keys=pa.array([node.key for node in nodes], pa.binary()),
        starts=np.array([node.start or 0 for node in nodes], np.int64),
        ends=np.array([node.end or 0 for node in nodes], np.int64),
        ts=np.array([node.ts for node in nodes], np.int64),
        over=np.array([at for _, _, at in over], np.int64),
    )
    return found, nodes


def results_of(
    work: Work, nodes: Sequence[Node], kept: dict[bytes, dict[bytes, str]]
) -> tuple[Results, list[BadRecord]]:
    """Compute the results of groups, one by one where some fail.

    Args:
        work: The aggregate.
        nodes: The groups.
        kept: The rows that are kept of them.
    """
    made = calculate(work.aggregate, nodes, range(len(nodes)), no_rows(), kept, results=True)
    bad = [
        BadRecord(row=place, phase="result", error=error, message=message)
        for place, (error, message) in made.failed.items()
    ]
    return made, bad


def places_over(work: Work, over: OverGroups) -> pa.Table:
    """Return where rows of groups stand: by when their time was up, then by their keys."""
    count = len(over.keys)
    times = over.over + 1 + work.aggregate.delay
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
            "members": _ranks(work, over),
            "ts": over.ts,
            "part": first_parts(over.keys, work.flow.partitions),
            "counted": pa.repeat(False, count),
            "forced": pa.repeat(False, count),
        }
    )


def _ranks(work: Work, over: OverGroups) -> pa.ListArray:
    """Return numbers that stand in the order of keys, then starts."""
    ranks = key_ranks(work.aggregate.keys, over.keys)
    offsets = ranks.offsets.to_numpy()
    numbers = np.insert(ranks.values.to_numpy(), offsets[1:], over.starts)
    places = (offsets + np.arange(len(offsets))).astype(np.int32)
    return pa.ListArray.from_arrays(pa.array(places), pa.array(numbers))
