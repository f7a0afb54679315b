"""Rows that are taken into sessions: they begin one, prolong it, or join several into one."""

from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from kaflow_engine.flow.windows import SessionWindow
from kaflow_engine.operators.aggregate.entries import Group, group_entry, read_entry
from kaflow_engine.operators.aggregate.nodes import Node
from kaflow_engine.operators.aggregate.settle import Gone, settle
from kaflow_engine.operators.aggregate.workspace import Work, texts
from kaflow_engine.operators.rows.schemas import OF_RECORDS


@dataclass(slots=True, kw_only=True)
class _Session:
    entry: bytes
    first: int
    last: int
    group: Group | None
    """As it was kept."""
    held: bool
    """It has not ended."""
    node: int | None = None
    """What it is by now; None: not touched."""


def take_into_sessions(work: Work, rows: pa.Table) -> pa.Table:
    """Take rows into the sessions of their groups.

    Args:
        work: The aggregate.
        rows: Schema EXCHANGE, in their order.

    Returns:
        The rows that are late.
    """
    window = work.aggregate.window
    assert isinstance(window, SessionWindow)
    keys = texts(rows["key"])
    stored = work.groups.under(sorted(set(keys)))
    taking = _Taking(work, window.gap)
    live = {
        key: [_session(work, *each) for each in some.items() if not each[1].closed]
        for key, some in stored.items()
    }
    late = np.zeros(rows.num_rows, np.bool_)
    times: list[int] = rows["ts"].to_pylist()
    phases: list[int] = rows["t_phase"].to_pylist()
    for place, (key, ts, phase) in enumerate(zip(keys, times, phases, strict=True)):
        near = [s for s in live[key] if s.first - window.gap <= ts <= s.last + window.gap]
        over = ts + window.gap + work.aggregate.grace < work.watermark
        if over and not near and phase >= OF_RECORDS:
            late[place] = True
            continue
        others = [session for session in live[key] if session not in near]
        near.sort(key=lambda session: session.first)
        live[key] = [*others, taking.joined(key, near, place, ts, early=phase < OF_RECORDS)]
    last = [s.node for some in live.values() for s in some if s.node is not None]
    settle(work, rows, taking.nodes, last, taking.changes(last))
    return rows.filter(pa.array(late))


def _session(work: Work, entry: bytes, group: Group) -> _Session:
    _, start = read_entry(work.aggregate, entry)
    assert start is not None
    return _Session(entry=entry, first=start, last=group.last, group=group, held=group.held)


class _Taking:
    """The nodes that rows make of sessions."""

    def __init__(self, work: Work, gap: int) -> None:
        self._gap = gap
        self._work = work
        self._each = work.aggregate.each and work.aggregate.is_table
        self.nodes: list[Node] = []
        self._changes: list[int | Gone] = []

    def joined(
        self, key: bytes, near: list[_Session], place: int, ts: int, *, early: bool
    ) -> _Session:
        """Return the session that sessions, in the order of their starts, become by a row: one that
        has ended does not wait again."""
        first = min([ts, *(session.first for session in near)])
        last = max([ts, *(session.last for session in near)])
        entry = group_entry(key, first)
        held = all(s.held for s in near) and self._work.holds(None, last + self._gap, early=early)
        each = self._each and not held
        parents = tuple(self._node(key, session) for session in near)
        for session, node in zip(near, parents, strict=True):
            if session.entry != entry and (session.group is not None or each):
                was = self.nodes[node]
                self._changes.append(Gone(was, session.entry, session.first, place))
        kept = near[0].group if near and near[0].entry == entry else None
        now = _Session(entry=entry, first=first, last=last, group=kept, held=held)
        if not each and len(near) == 1 and self.nodes[parents[0]].stored is None:
            node = self.nodes[parents[0]]  # nothing else is made of it
            now.node = parents[0]
        else:
            node = Node(entry=entry, key=key, start=first, end=0, ts=ts, parents=parents)
            self.nodes.append(node)
            now.node = len(self.nodes) - 1
        node.rows.append(place)
        node.held = held
        node.entry, node.start, node.last, node.end = entry, first, last, last + self._gap
        node.ts = max([ts, node.ts, *(self.nodes[parent].ts for parent in parents)])
        if each:
            self._changes.append(now.node)
        return now

    def changes(self, last: list[int]) -> list[int | Gone]:
        """Return what changed, in order; where not each change counts, what groups became."""
        if self._each:
            return self._changes
        become = [node for node in last if self.nodes[node].stored is None]
        found = [*self._changes, *become]
        return sorted(found, key=self._order)

    def _order(self, change: int | Gone) -> tuple[int, bool, int]:
        if isinstance(change, Gone):
            return change.by, False, change.start
        node = self.nodes[change]
        return node.by, True, node.start or 0

    def _node(self, key: bytes, session: _Session) -> int:
        if session.node is None:
            group = session.group
            assert group is not None
            node = Node(
                entry=session.entry,
                key=key,
                start=session.first,
                end=session.last + self._gap,
                ts=group.ts,
                last=session.last,
                stored=group,
                held=session.held,
            )
            self.nodes.append(node)
            session.node = len(self.nodes) - 1
        return session.node
