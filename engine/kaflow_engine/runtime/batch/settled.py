"""Up to which event time a stream has written all its rows."""

from collections.abc import Mapping
from typing import assert_never

from kaflow_engine.flow.chains.chain import Chain, aggregates_of, chains_into
from kaflow_engine.flow.flow import Flow
from kaflow_engine.flow.graph import table_sinks
from kaflow_engine.flow.windows import (
    CalendarWindow,
    FixedWindow,
    NamedWindow,
    SessionWindow,
    Window,
    span_of,
)
from kaflow_engine.operators.rows.table_rows import length_of
from kaflow_engine.plan.evolution.evolution import keeps_rows
from kaflow_engine.runtime.batch.position import Position
from kaflow_engine.state.log.by_chain import known, least


def settled_tables(plan: Flow, before: Mapping[int, int], standing: Position) -> Mapping[str, int]:
    """Return up to when all chains into each table are settled, where they have read events (see
    `settled_until`)."""
    found = {
        sink.target: least(
            {
                chain.number: settled_until(plan, chain, before, standing)
                for chain in chains_into(plan, sink)
            }
        )
        for sink in table_sinks(plan)
    }
    return {target: until for target, until in found.items() if until is not None}


def settled_until(
    plan: Flow, chain: Chain, before: Mapping[int, int], standing: Position
) -> int | None:
    """Return up to when a chain will write no row any more of the records that it has read.

    What a batch finds expired it writes, or drops, before it reads; so everything has settled that
    expires before the watermark with which the last batch ran, or with which the next one will run
    if nothing that rests falls due before that.

    Args:
        plan: Of the chain.
        chain: One of it.
        before: The watermarks with which the last batch ran, by chain.
        standing: Where that batch has left the pipeline.

    Returns:
        Event time in epoch milliseconds; None: it has read no event yet.
    """
    after = standing.watermark.values.get(chain.number)
    if after is not None:
        after = min(after, standing.next_due.get(chain.number, after))
    marks = known({0: before.get(chain.number), 1: after})
    return max(marks.values()) - longest_wait(plan, chain) if marks else None


def longest_wait(plan: Flow, chain: Chain) -> int:
    """Return how many milliseconds of event time a row of a chain may wait, or be written again,
    and a window stay open."""
    rests = chain.ledger is not None or any(keeps_rows(plan, join) for join in chain.joins)
    return max(chain.driving.ttl if rests else 0, longest_open(plan, chain))


def longest_open(plan: Flow, chain: Chain) -> int:
    """Return how far the watermark must be behind a range of whole partitions, in milliseconds,
    when the last window that begins in it closes; sessions need not be closed by then.
    """
    windows = [each for each in aggregates_of(plan, chain) if each.window is not None]
    if not windows:
        return 0
    lengths = [
        length_of(sink.table.partition)
        for sink in table_sinks(plan)
        if chain in chains_into(plan, sink)
    ]
    shortest = min(lengths, default=None)
    return max(
        each.delay + each.grace + (_beyond(each.window, shortest) if each.window else 0)
        for each in windows
    )


def _beyond(window: Window, length: int | None) -> int:
    """Return how far a window may end behind the partition in which it begins."""
    match window:
        case FixedWindow(size=size, advance=advance, origin=origin):
            fits = length is not None and length % advance == 0 and origin % advance == 0
            return size - advance if fits else size
        case CalendarWindow() | SessionWindow() | NamedWindow():
            return span_of(window)
        case _:
            assert_never(window)
