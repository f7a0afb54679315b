"""What groups were and become in a batch: each a node, made of nodes before it and of rows."""

from collections.abc import Sequence
from dataclasses import dataclass, field

from kaflow_engine.operators.aggregate.entries import Group


@dataclass(slots=True, kw_only=True)
class Node:
    """A group at one moment."""

    entry: bytes
    """The key of its entry."""
    key: bytes
    """Its grouping values behind their shard byte."""
    start: int | None
    """Of its window."""
    end: int | None
    ts: int
    """Greatest event time of its rows."""
    last: int = 0
    """Of a session."""
    parents: tuple[int, ...] = ()
    """The nodes that it is made of, as places in the list of nodes."""
    rows: list[int] = field(default_factory=list[int])
    """The rows that came since, as places."""
    count: int = 0
    """How many rows it has, where rows are taken away, too."""
    stored: Group | None = None
    """As it was kept; such a node has no parents."""
    held: bool = False
    """Its window has not ended: nothing of it leaves."""

    @property
    def by(self) -> int:
        """The row that made it."""
        return self.rows[-1]


@dataclass(frozen=True, slots=True)
class Parts:
    """What a node is made of, in the end."""

    stored: list[int]
    """Places of stored nodes, in order of their windows."""
    rows: list[int]
    """Places of rows, in their order."""


def parts_of_nodes(nodes: Sequence[Node]) -> list[Parts]:
    """Return what each node is made of; parents stand before their children."""
    found: list[Parts] = []
    for place, node in enumerate(nodes):
        if node.stored is not None:
            found.append(Parts([place], []))
            continue
        stored = [one for parent in node.parents for one in found[parent].stored]
        rows = [row for parent in node.parents for row in found[parent].rows] + node.rows
        found.append(Parts(stored, sorted(rows)))
    return found
