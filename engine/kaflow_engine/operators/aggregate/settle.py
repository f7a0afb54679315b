"""What nodes become: groups that are kept, and changes that may leave."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import pyarrow as pa

from kaflow_engine.operators.aggregate.calculate import Results, calculate, keeps_rows
from kaflow_engine.operators.aggregate.entries import Group, identity_of
from kaflow_engine.operators.aggregate.nodes import Node, Parts, parts_of_nodes
from kaflow_engine.operators.aggregate.workspace import Change, Work, texts
from kaflow_engine.operators.rows.schemas import TAKEN


@dataclass(frozen=True, slots=True)
class Gone:
    """A group that is no more: it went into another one, or has no rows."""

    node: Node
    """What it was."""
    entry: bytes
    start: int
    by: int
    """The row that did it."""


def settle(
    work: Work,
    rows: pa.Table,
    nodes: Sequence[Node],
    last: Sequence[int],
    changed: Sequence[int | Gone],
) -> None:
    """Compute nodes, and keep what groups have become.

    Args:
        work: The aggregate.
        rows: Schema EXCHANGE, in their order: a node names them by their places.
        nodes: Parents before their children.
        last: The places of the nodes that groups have become, stored ones among them.
        changed: The nodes that groups became, and groups that are no more, in their order.
    """
    before = work.count
    work.rows.append(rows)
    gone = {each.entry for each in changed if isinstance(each, Gone)}
    become = [place for place in last if nodes[place].stored is None]
    kept: dict[bytes, dict[bytes, str]] = {}
    stored = [n.entry for n in nodes if n.stored is not None and (gone or not n.held)]
    if keeps_rows(work.aggregate) and stored and (gone or work.aggregate.is_table):
        kept = work.groups.rows(stored)
    shown = [each for each in changed if not _node(nodes, each).held]
    found = _results(work, rows, nodes, become, shown, kept)
    if work.aggregate.is_table:
        work.changes.extend(_change(nodes, each, before, found) for each in shown)
    for entry in gone:
        work.groups.drop(entry)
        if work.aggregate.retracts:
            for tail in kept.get(entry, ()):
                work.groups.keep(entry, tail, None)
    known = {node.entry for node in nodes if node.stored is not None} - gone
    for place in become:
        _keep(work, nodes[place], place, found, nodes[place].entry in known)
    if keeps_rows(work.aggregate):
        _keep_rows(work, rows, nodes, become, kept)


def _results(
    work: Work,
    rows: pa.Table,
    nodes: Sequence[Node],
    become: Sequence[int],
    changed: Sequence[int | Gone],
    kept: dict[bytes, dict[bytes, str]],
) -> Results:
    """Compute what groups become, and of a table what they sent last before the batch."""
    wanted = dict.fromkeys(become)
    is_table = work.aggregate.is_table
    first: list[int] = []
    if is_table:
        wanted |= dict.fromkeys(each for each in changed if not isinstance(each, Gone))
        first = [
            place
            for place, node in enumerate(nodes)
            if node.stored is not None and node.entry not in work.sent
        ]
        wanted |= dict.fromkeys(place for place in first if not _unsent(nodes[place]))
    seen = sorted(place for place in wanted if not nodes[place].held)
    found = calculate(work.aggregate, nodes, seen, rows, kept, results=is_table)
    held = sorted(place for place in wanted if nodes[place].held)
    if held:
        found.add(calculate(work.aggregate, nodes, held, rows, kept, results=False))
    for place in first:
        stored = nodes[place].stored
        assert stored is not None
        sent = stored.sent if stored.unsent else found.rows.get(place)
        work.sent[nodes[place].entry] = sent
    for place in wanted:
        work.sent.setdefault(nodes[place].entry, None)
    return found


def _unsent(node: Node) -> bool:
    return node.stored is not None and node.stored.unsent


def _node(nodes: Sequence[Node], each: int | Gone) -> Node:
    return each.node if isinstance(each, Gone) else nodes[each]


def _change(nodes: Sequence[Node], each: int | Gone, before: int, found: Results) -> Change:
    node = _node(nodes, each)
    change = Change(
        entry=node.entry, key=node.key, start=node.start, end=node.end, ts=node.ts, by=0, row=None
    )
    if isinstance(each, Gone):
        return replace(change, entry=each.entry, start=each.start, by=before + each.by)
    row, failed = found.rows.get(each), found.failed.get(each)
    return replace(change, by=before + node.by, row=row, failed=failed)


def _keep(work: Work, node: Node, place: int, found: Results, known: bool) -> None:
    columns = found.columns.get(place)
    group = Group(
        ts=node.ts,
        last=node.last,
        columns=columns or "",
        broken=found.failed[place] if columns is None else None,
        rows=node.count if work.aggregate.retracts else None,
        unsent=node.held,
        held=node.held,
    )
    work.groups.put(node.entry, group, known=known)


def _keep_rows(
    work: Work,
    rows: pa.Table,
    nodes: Sequence[Node],
    become: Sequence[int],
    kept: dict[bytes, dict[bytes, str]],
) -> None:
    """Keep the rows of groups; those of a group that went into another one move there."""
    every = parts_of_nodes(nodes)
    if work.aggregate.retracts:
        _keep_present(work, rows, {nodes[place].entry: every[place] for place in become}, kept)
        return
    tails = [work.next_tail(key) for key in texts(rows["key"])]
    payloads: list[str] = rows["payload"].to_pylist()
    for place in become:
        node = nodes[place]
        for one in every[place].stored:
            entry = nodes[one].entry
            if entry == node.entry or entry not in kept:
                continue
            for tail, row in kept[entry].items():
                work.groups.keep(entry, tail, None)
                work.groups.keep(node.entry, tail, row)
        for row in every[place].rows:
            work.groups.keep(node.entry, tails[row], payloads[row])


def _keep_present(
    work: Work,
    rows: pa.Table,
    become: Mapping[bytes, Parts],
    kept: Mapping[bytes, Mapping[bytes, str]],
) -> None:
    """Keep the rows that came to groups, and forget those that were taken away."""
    keys, identities = texts(rows["key"]), texts(rows["value"])
    payloads: list[str] = rows["payload"].to_pylist()
    kinds: list[int] = rows["kind"].to_pylist()
    for entry, made in become.items():
        tails = {identity_of(tail): tail for tail in kept.get(entry, {})} if made.stored else {}
        for row in made.rows:
            identity = identities[row]
            if kinds[row] == TAKEN:
                work.groups.keep(entry, tails.pop(identity), None)
            else:
                tails[identity] = work.next_tail(keys[row], identity)
                work.groups.keep(entry, tails[identity], payloads[row])
