"""The outputs of a plan as the driver sees them: opened, looked at, handed over."""

import os
from collections.abc import Callable
from dataclasses import replace

from kaflow_engine.connectors.connections import Connections
from kaflow_engine.connectors.contract import (
    Bounded,
    Owner,
    Sink,
)
from kaflow_engine.connectors.holding import Holding
from kaflow_engine.connectors.replaced import Replaced, ReplacedGroups, ReplacedRecords
from kaflow_engine.flow.flow import Backfill, Flow
from kaflow_engine.flow.sinks import ConnectorSink
from kaflow_engine.operators.rows.table_rows import GROUP, SOURCE, partitions_between
from kaflow_engine.runtime.tasks.crash import crash_point
from kaflow_engine.runtime.tasks.outputs import (
    NO_CONNECTIONS,
    ColumnOutput,
    Parted,
    column_outputs,
)
from kaflow_engine.state.log.batch_log import StateRecord
from kaflow_engine.state.storage.store import Store

_NO_ONE = Owner(state="", generation=0)


def open_outputs(
    plan: Flow,
    state: StateRecord,
    store: Store,
    require_newest: Callable[[], None],
    connections: Connections = NO_CONNECTIONS,
    epoch: int = 0,
) -> tuple[Sink, ...]:
    """Open the outputs of a plan whose rows are columns; records leave with the dead letters.

    Args:
        plan: What is to run.
        state: Whose batches they are.
        store: Where a backfill keeps notes of its files.
        require_newest: Raises where another run has begun.
        connections: Where outside systems are.
        epoch: Of the run.

    Raises:
        SinkError: One cannot be written.
        StateError: A backfill cannot replace what one has.
    """
    owner = replace(owner_of(state), epoch=epoch)

    def opened(into: ColumnOutput) -> Sink:
        bounded = None
        if plan.backfill is not None and into.parted is not None:
            bounded = Bounded(
                replaced=replaced_by(into.parted, plan.backfill, state),
                store=store,
                require_newest=require_newest,
                passing=lambda point: crash_point(point, 0, os.getpid()),  # of all batches, of none
            )
        return into.outlet.open(into.output, into.columns, owner, bounded)

    return tuple(opened(into) for into in column_outputs(plan, connections))


def fence_outputs(
    plan: Flow, state: StateRecord, store: Store, connections: Connections, epoch: int
) -> bool:
    """Let no task of an earlier run commit to outputs whose transactions are not those of Kafka.

    Args:
        plan: What they belong to.
        state: Whose batches they are.
        store: As for `open_outputs`.
        connections: As for `open_outputs`.
        epoch: Of the run that has begun.

    Returns:
        Whether there are such outputs.

    Raises:
        SinkError: One cannot be written, or a newer run has begun.
    """
    sinks = tuple(sink for sink in plan.sinks if isinstance(sink, ConnectorSink))
    only = replace(plan, sinks=sinks)
    return bool(open_outputs(only, state, store, _no_check, connections, epoch))


def dropped_outputs(
    begun: Flow,
    plan: Flow,
    state: StateRecord,
    store: Store,
    connections: Connections = NO_CONNECTIONS,
    epoch: int = 0,
) -> tuple[Sink, ...]:
    """Open the outputs of an earlier plan that a stream has no more.

    Args:
        begun: The plan that a batch was begun with: it has rows for all of its outputs.
        plan: What is to run.
        state: Whose batches they are.
        store: As for `open_outputs`.
        connections: As for `open_outputs`.
        epoch: As for `open_outputs`.

    Raises:
        SinkError: One cannot be written.
    """
    kept = {sink.id for sink in plan.sinks}
    gone = tuple(sink for sink in begun.sinks if sink.id not in kept)
    letters = None if begun.letters == plan.letters else begun.letters
    only = replace(begun, sinks=gone, letters=letters)
    return open_outputs(only, state, store, _no_check, connections, epoch)


def _no_check() -> None:
    """Let a batch be committed: who runs a stream claims each before."""


def look_at_outputs(
    plan: Flow, state: StateRecord | None = None, connections: Connections = NO_CONNECTIONS
) -> list[Holding]:
    """Return what the outputs of a plan hold, from whatever state; nothing is changed by looking.

    Args:
        plan: What is to run; a backfill has no batches of its own there.
        state: Whose batches are looked for; None: only whether outputs can be written.
        connections: Where outside systems are.

    Raises:
        SinkError: One could not be written, or cannot be read.
    """
    owner = _NO_ONE if state is None else owner_of(state)
    held = [
        holding
        for into in column_outputs(plan, connections)
        for holding in into.outlet.look(into.output, into.columns, owner)
    ]
    return [] if plan.backfill is not None else held


def hand_over(plan: Flow, state: StateRecord, connections: Connections = NO_CONNECTIONS) -> None:
    """Make the outputs of a plan those of a state which replaces another one.

    Raises:
        SinkError: One cannot be written.
    """
    for into in column_outputs(plan, connections):
        into.outlet.hand_over(into.output, into.columns, owner_of(state))


def owner_of(state: StateRecord) -> Owner:
    """Return whose batches those of a state are."""
    return Owner(state=state.state_id, generation=state.generation)


def replaced_by(into: Parted, wanted: Backfill, state: StateRecord) -> Replaced:
    """Return the rows of a table that a backfill replaces."""
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
