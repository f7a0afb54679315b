"""The outputs of a plan as the driver sees them: opened, looked at, handed over."""

import os
from collections.abc import Callable
from dataclasses import replace

from kaflow_engine.connectors.contract import (
    Bounded,
    Owner,
    Replaced,
    ReplacedGroups,
    ReplacedRecords,
    Sink,
)
from kaflow_engine.connectors.holding import Holding
from kaflow_engine.flow.flow import Backfill, Flow
from kaflow_engine.operators.rows.table_rows import GROUP, SOURCE, partitions_between
from kaflow_engine.runtime.tasks.crash import crash_point
from kaflow_engine.runtime.tasks.outputs import ColumnOutput, column_outputs
from kaflow_engine.state.log.batch_log import StateRecord
from kaflow_engine.state.storage.store import Store

_NO_ONE = Owner(state="", generation=0)


def open_outputs(
    plan: Flow, state: StateRecord, store: Store, require_newest: Callable[[], None]
) -> tuple[Sink, ...]:
    """Open the outputs of a plan whose rows are columns; records leave with the dead letters.

    Args:
        plan: What is to run.
        state: Whose batches they are.
        store: Where a backfill keeps notes of its files.
        require_newest: Raises where another run has begun.

    Raises:
        SinkError: One cannot be written.
        StateError: A backfill cannot replace what one has.
    """

    def opened(into: ColumnOutput) -> Sink:
        bounded = None
        if plan.backfill is not None:
            bounded = Bounded(
                replaced=replaced_by(into, plan.backfill, state),
                store=store,
                require_newest=require_newest,
                passing=lambda point: crash_point(point, 0, os.getpid()),  # of all batches, of none
            )
        return into.outlet.open(into.output, into.columns, owner_of(state), bounded)

    return tuple(opened(into) for into in column_outputs(plan))


def dropped_outputs(begun: Flow, plan: Flow, state: StateRecord, store: Store) -> tuple[Sink, ...]:
    """Open the outputs of an earlier plan that a stream has no more.

    Args:
        begun: The plan that a batch was begun with: it has rows for all of its outputs.
        plan: What is to run.
        state: Whose batches they are.
        store: As for `open_outputs`.

    Raises:
        SinkError: One cannot be written.
    """
    kept = {sink.id for sink in plan.sinks}
    gone = tuple(sink for sink in begun.sinks if sink.id not in kept)
    return open_outputs(replace(begun, sinks=gone), state, store, _no_check)


def _no_check() -> None:
    """Let a batch be committed: who runs a stream claims each before."""


def look_at_outputs(plan: Flow, state: StateRecord | None = None) -> list[Holding]:
    """Return what the outputs of a plan hold, from whatever state; nothing is changed by looking.

    Args:
        plan: What is to run; a backfill has no batches of its own there.
        state: Whose batches are looked for; None: only whether outputs can be written.

    Raises:
        SinkError: One could not be written, or cannot be read.
    """
    owner = _NO_ONE if state is None else owner_of(state)
    held = [
        holding
        for into in column_outputs(plan)
        for holding in into.outlet.look(into.output, into.columns, owner)
    ]
    return [] if plan.backfill is not None else held


def hand_over(plan: Flow, state: StateRecord) -> None:
    """Make the outputs of a plan those of a state which replaces another one.

    Raises:
        SinkError: One cannot be written.
    """
    for into in column_outputs(plan):
        into.outlet.hand_over(into.output, into.columns, owner_of(state))


def owner_of(state: StateRecord) -> Owner:
    """Return whose batches those of a state are."""
    return Owner(state=state.state_id, generation=state.generation)


def replaced_by(into: ColumnOutput, wanted: Backfill, state: StateRecord) -> Replaced:
    """Return the rows of an output that a backfill replaces."""
    partitions = frozenset(partitions_between(wanted.start, wanted.end, into.partition))
    if into.grouped:
        return ReplacedGroups(partitions=partitions, group=GROUP, unknown=wanted.force)
    goal = state.goal.get(into.driving, {})
    return ReplacedRecords(
        partitions=partitions,
        source=SOURCE,
        read={p: (first, goal[p]) for p, first in state.start[into.driving].items() if p in goal},
        unknown=wanted.force,
    )
