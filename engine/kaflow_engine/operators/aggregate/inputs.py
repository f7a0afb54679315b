"""What the statements of an aggregate read: nodes, stored accumulators, and rows."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

import pyarrow as pa

from kaflow_engine.flow.operators import Aggregate
from kaflow_engine.operators.aggregate.entries import identity_of
from kaflow_engine.operators.aggregate.nodes import Node, Parts
from kaflow_engine.operators.rows.schemas import TAKEN


@dataclass(frozen=True, slots=True)
class Inputs:
    """What statements are made of, and read."""

    aggregate: Aggregate
    nodes: Sequence[Node]
    given: pa.Table
    kept: Mapping[bytes, Mapping[bytes, str]]

    def infos(self, wanted: Sequence[int]) -> pa.Table:
        """Return nodes with what is not computed."""
        nodes = [self.nodes[v] for v in wanted]
        return pa.table(
            {
                "v": pa.array(wanted, pa.int64()),
                "keys": pa.array([node.key[1:].decode() for node in nodes], pa.string()),
                "began": pa.array([node.start for node in nodes], pa.int64()),
                "ended": pa.array([node.end for node in nodes], pa.int64()),
                "ts": pa.array([node.ts for node in nodes], pa.int64()),
            }
        )

    def olds(self, pairs: Iterable[tuple[int, int, int]]) -> pa.Table:
        """Return stored accumulators: of each the node it goes into, its group, and its place."""
        numbers, groups, places = _columns(pairs)
        stored = (self.nodes[place].stored for place in places)
        columns = pa.array([s.columns for s in stored if s is not None], pa.string())
        return pa.table({"v": numbers, "g": groups, "columns": columns})

    def news(self, pairs: Iterable[tuple[int, int, int]]) -> pa.Table:
        """Return rows: of each the node it goes into, its group, and its place."""
        numbers, groups, places = _columns(pairs)
        rows = self.given.select(["kind", "payload"]).take(pa.array(places, pa.int64()))
        return rows.append_column("v", numbers).append_column("g", groups)

    def rows(self, parts: Mapping[int, Parts]) -> pa.Table:
        """Return all rows of nodes: those that are kept, then those that came since."""
        numbers: list[int] = []
        payloads: list[str] = []
        for v, made in parts.items():
            held = [row for one in made.stored for row in self.kept[self.nodes[one].entry].items()]
            present = self._present(sorted(held), made.rows)
            payloads += present
            numbers += [v] * len(present)
        columns = [pa.array(numbers, pa.int64()), pa.array(payloads, pa.string())]
        return pa.table(columns, names=["v", "payload"])

    def _present(self, held: Sequence[tuple[bytes, str]], places: Sequence[int]) -> list[str]:
        """Return rows that were kept, with those that came since and without those that went."""
        since = self.given.select(["payload", "kind", "value"]).take(pa.array(places, pa.int64()))
        if not self.aggregate.retracts:
            return [*(row for _, row in held), *since["payload"].to_pylist()]
        rows = {identity_of(tail): row for tail, row in held}
        columns = (column.to_pylist() for column in since.columns)
        for payload, kind, identity in zip(*columns, strict=True):
            if kind == TAKEN:
                del rows[identity]
            else:
                rows[identity] = payload
        return list(rows.values())


def _columns(pairs: Iterable[tuple[int, int, int]]) -> tuple[pa.Array, pa.Array, list[int]]:
    numbers: list[int] = []
    groups: list[int] = []
    places: list[int] = []
    for number, group, place in pairs:
        numbers.append(number)
        groups.append(group)
        places.append(place)
    return pa.array(numbers, pa.int64()), pa.array(groups, pa.int64()), places
