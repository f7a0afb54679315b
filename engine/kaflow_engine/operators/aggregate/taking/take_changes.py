"""Rows of a table that come to groups, and rows that are taken away from them."""

from dataclasses import dataclass, field

import pyarrow as pa

from kaflow_engine.operators.aggregate.entries import Group, group_entry
from kaflow_engine.operators.aggregate.nodes import Node
from kaflow_engine.operators.aggregate.settle import Gone, settle
from kaflow_engine.operators.aggregate.workspace import Work, texts
from kaflow_engine.operators.rows.row_order import causes_of
from kaflow_engine.operators.rows.schemas import TAKEN


def take_changes(work: Work, rows: pa.Table) -> None:
    """Take rows into their groups, or away from them.

    What one record does to a group counts at once. A group that is without rows then is no more;
    without grouping values it stays.

    Args:
        work: The aggregate.
        rows: Schema EXCHANGE, in their order.
    """
    keys = texts(rows["key"])
    entries = {key: group_entry(key, None) for key in dict.fromkeys(keys)}
    stored = dict(zip(entries, work.groups.of(list(entries.values())), strict=True))
    taking = _Taking(
        each=work.aggregate.each, ends=bool(work.aggregate.keys), entries=entries, stored=stored
    )
    times: list[int] = rows["ts"].to_pylist()
    kinds: list[int] = rows["kind"].to_pylist()
    for place, (key, ts, kind, cause) in enumerate(
        zip(keys, times, kinds, causes_of(rows).tolist(), strict=True)
    ):
        taking.take(place, key, ts, -1 if kind == TAKEN else 1, cause)
    last = [place for place in taking.now.values() if not taking.is_gone(place)]
    settle(work, rows, taking.nodes, last, taking.changes())


@dataclass(slots=True, kw_only=True)
class _Taking:
    each: bool
    ends: bool
    """A group without rows is no more."""
    entries: dict[bytes, bytes]
    stored: dict[bytes, Group | None]
    nodes: list[Node] = field(default_factory=list[Node])
    now: dict[bytes, int] = field(default_factory=dict[bytes, int])
    """The last node of each group."""
    _changed: list[int] = field(default_factory=list[int])
    _causes: dict[bytes, int] = field(default_factory=dict[bytes, int])

    def take(self, place: int, key: bytes, ts: int, sign: int, cause: int) -> None:
        """Take one row, or take it away."""
        node = self._node(key, ts, self._causes.get(key) != cause)
        self._causes[key] = cause
        node.rows.append(place)
        node.ts = max(node.ts, ts)
        node.count += sign

    def is_gone(self, place: int) -> bool:
        """Tell whether a node is a group that is no more."""
        return self.ends and self.nodes[place].count == 0

    def changes(self) -> list[int | Gone]:
        """Return the nodes that groups became, and groups that are no more, in their order."""
        return [self._gone(place) if self.is_gone(place) else place for place in self._changed]

    def _gone(self, place: int) -> Gone:
        node = self.nodes[place]
        return Gone(node=node, entry=node.entry, start=0, by=node.by)

    def _node(self, key: bytes, ts: int, new_cause: bool) -> Node:
        """Return the node that a row goes into."""
        if key not in self.now:
            group = self.stored[key]
            if group is not None:
                self._add(key, group.ts, group.rows or 0, ())
                self.nodes[-1].stored = group
        place = self.now.get(key)
        if place is None or (new_cause and self.is_gone(place)):
            self._add(key, ts, 0, ())
        elif self.nodes[place].stored is None and not (self.each and new_cause):
            return self.nodes[place]
        else:
            before = self.nodes[place]
            self._add(key, before.ts, before.count, (place,))
        self._changed.append(len(self.nodes) - 1)
        return self.nodes[-1]

    def _add(self, key: bytes, ts: int, count: int, parents: tuple[int, ...]) -> None:
        node = Node(
            entry=self.entries[key],
            key=key,
            start=None,
            end=None,
            ts=ts,
            parents=parents,
            count=count,
        )
        self.nodes.append(node)
        self.now[key] = len(self.nodes) - 1
