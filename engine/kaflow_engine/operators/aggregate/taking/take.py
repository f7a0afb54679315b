"""Rows that are taken into groups of fixed windows, or of no window."""

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from kaflow_engine.flow.windows import SessionWindow
from kaflow_engine.operators.aggregate.entries import group_entry
from kaflow_engine.operators.aggregate.nodes import Node
from kaflow_engine.operators.aggregate.settle import settle
from kaflow_engine.operators.aggregate.taking.bulk import may_be_bulk, take_in_bulk
from kaflow_engine.operators.aggregate.windows import Numbers, ends_of, windows_of
from kaflow_engine.operators.aggregate.workspace import Work, texts
from kaflow_engine.operators.rows.schemas import OF_RECORDS


def take_into_fixed(work: Work, rows: pa.Table) -> pa.Table:
    """Take rows into their groups.

    Args:
        work: The aggregate.
        rows: Schema EXCHANGE, in their order.

    Returns:
        The rows that are late.
    """
    places, starts, ends = _windows(work, rows)
    late = np.zeros(rows.num_rows, np.bool_)
    if work.aggregate.window is not None:
        never_late = np.less(rows["t_phase"].to_numpy(), OF_RECORDS)
        held = (ends + work.aggregate.grace > work.watermark) | never_late[places]
        late[:] = True
        late[places[held]] = False
        places, starts, ends = places[held], starts[held], ends[held]
    of_records = pc.all(
        pc.greater_equal(rows["t_phase"], OF_RECORDS)
    ).as_py()  # others may be over at once
    if of_records and work.aggregate.leaves == "ended":
        open_ = ends > work.watermark
        _take(work, rows, (places[open_], starts[open_], ends[open_]), at_once=not work.rows)
        places, starts, ends = places[~open_], starts[~open_], ends[~open_]
        _take(work, rows, (places, starts, ends), at_once=False)
    else:
        at_once = of_records and work.groups.is_untouched
        _take(work, rows, (places, starts, ends), at_once=at_once)
    return rows.filter(pa.array(late))


def _take(
    work: Work, rows: pa.Table, into: tuple[Numbers, Numbers, Numbers], *, at_once: bool
) -> None:
    """Take rows into windows.

    Args:
        work: The aggregate.
        rows: Schema EXCHANGE, in their order.
        into: The places of rows, as often as there are windows that they fall into; starts and ends
            of these.
        at_once: Nothing has been put into these windows before.
    """
    if not len(into[0]):
        return
    if at_once and may_be_bulk(work.aggregate) and take_in_bulk(work, rows, *into):
        return
    nodes, made, changed = _nodes(work, rows, *into)
    settle(work, rows, nodes, made, changed)


def _windows(work: Work, rows: pa.Table) -> tuple[Numbers, Numbers, Numbers]:
    window = work.aggregate.window
    assert not isinstance(window, SessionWindow)
    if window is None:
        nothing = np.zeros(rows.num_rows, np.int64)
        return np.arange(rows.num_rows), nothing, nothing
    places, starts = windows_of(work.aggregate, window, rows)
    return places, starts, ends_of(window, starts)


def _nodes(
    work: Work, rows: pa.Table, places: Numbers, starts: Numbers, ends: Numbers
) -> tuple[list[Node], list[int], list[int]]:
    """Return nodes, those that are what groups become, and the changes in their order."""
    keys = texts(rows["key"])
    times: list[int] = rows["ts"].to_pylist()
    early: list[bool] = pc.less(rows["t_phase"], OF_RECORDS).to_pylist()
    windowed = work.aggregate.window is not None
    spans: zip[tuple[int, int, int]] = zip(
        *(numbers.tolist() for numbers in (places, starts, ends)), strict=True
    )
    into = [
        (place, group_entry(keys[place], start if windowed else None), start, end)
        for place, start, end in spans
    ]
    entries = list(dict.fromkeys(entry for _, entry, _, _ in into))
    stored = dict(zip(entries, work.groups.of(entries), strict=True))
    nodes: list[Node] = []
    now: dict[bytes, int] = {}
    held: dict[bytes, bool] = {}
    each = work.aggregate.each and work.aggregate.is_table
    changed: list[int] = []
    for place, entry, start, end in into:
        window = (start, end) if windowed else (None, None)
        if entry not in now:
            group = stored[entry]
            held[entry] = work.holds(group, end - 1, early=early[place])
            if group is not None:
                now[entry] = _add(nodes, entry, keys[place], window, group.ts)
                nodes[-1].stored, nodes[-1].held = group, held[entry]
        before = now.get(entry)
        apart = each and not held[entry]
        if before is None or apart or nodes[before].stored is not None:
            ts = times[place] if before is None else max(times[place], nodes[before].ts)
            now[entry] = _add(nodes, entry, keys[place], window, ts)
            nodes[-1].parents = () if before is None else (before,)
            nodes[-1].held = held[entry]
            changed.append(now[entry])
        node = nodes[now[entry]]
        node.rows.append(place)
        node.ts = max(node.ts, times[place])
    return nodes, list(now.values()), changed


def _add(
    nodes: list[Node], entry: bytes, key: bytes, window: tuple[int | None, int | None], ts: int
) -> int:
    start, end = window
    nodes.append(Node(entry=entry, key=key, start=start, end=end, ts=ts))
    return len(nodes) - 1
