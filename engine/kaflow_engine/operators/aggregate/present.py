"""The rows of groups as they were sent last, from what is kept of them."""

from collections.abc import Iterator, Sequence

from kaflow_engine.flow.operators import Aggregate
from kaflow_engine.operators.aggregate.calculate import calculate, keeps_rows
from kaflow_engine.operators.aggregate.entries import end_of, read_entry, read_group
from kaflow_engine.operators.aggregate.groups import Groups
from kaflow_engine.operators.aggregate.nodes import Node
from kaflow_engine.operators.aggregate.workspace import no_rows
from kaflow_engine.operators.keyed_state import StepState


def present_rows(
    aggregate: Aggregate, state: StepState, entries: Sequence[bytes], values: Sequence[bytes]
) -> Iterator[tuple[bytes, bytes, str, int]]:
    """Yield key of the entry, grouping values behind the shard byte, packed row and event time.

    Groups of which nothing was sent are left out.

    Args:
        aggregate: Whose groups they are.
        state: Of the aggregate, before the batch.
        entries: Their keys.
        values: What is kept of them.
    """
    nodes: list[Node] = []
    for entry, value in zip(entries, values, strict=True):
        group = read_group(value)
        key, start = read_entry(aggregate, entry)
        end = end_of(aggregate, start, group.last)
        nodes.append(Node(entry=entry, key=key, start=start, end=end, ts=group.ts, stored=group))
    shown = [n for n, node in enumerate(nodes) if node.stored and not node.stored.unsent]
    kept: dict[bytes, dict[bytes, str]] = {}
    if keeps_rows(aggregate) and shown:
        kept = Groups(aggregate, state).rows([nodes[place].entry for place in shown])
    made = calculate(aggregate, nodes, shown, no_rows(), kept, results=True)
    for place, node in enumerate(nodes):
        assert node.stored is not None
        row = node.stored.sent if node.stored.unsent else made.rows.get(place)
        if row is not None:
            yield node.entry, node.key, row, node.ts
