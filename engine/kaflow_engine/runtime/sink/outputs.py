"""The outputs of a plan as the driver sees them: opened, looked at, handed over."""

import os
from collections.abc import Callable

from kaflow_engine.connectors.contract import Bounded, Owner, Replaced, Sink
from kaflow_engine.connectors.holding import Holding
from kaflow_engine.flow.flow import Backfill, Flow
from kaflow_engine.flow.graph import driving_source, only_sink, output_table
from kaflow_engine.flow.sinks import TableParams
from kaflow_engine.operators.rows.table_rows import SOURCE, partitions_between
from kaflow_engine.runtime.tasks.crash import crash_point
from kaflow_engine.runtime.tasks.outputs import column_output
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
    into, table = column_output(only_sink(plan)), output_table(plan)
    if into is None or table is None:
        return ()
    bounded = None
    if plan.backfill is not None:
        bounded = Bounded(
            replaced=replaced_by(plan, table, plan.backfill, state),
            store=store,
            require_newest=require_newest,
            passing=lambda point: crash_point(point, 0, os.getpid()),  # of all batches, so of none
        )
    return (into.outlet.open(into.output, into.columns, owner_of(state), bounded),)


def look_at_outputs(plan: Flow, state: StateRecord | None = None) -> list[Holding]:
    """Return what the outputs of a plan hold, from whatever state; nothing is changed by looking.

    Args:
        plan: What is to run; a backfill has no batches of its own there.
        state: Whose batches are looked for; None: only whether outputs can be written.

    Raises:
        SinkError: One could not be written, or cannot be read.
    """
    into = column_output(only_sink(plan))
    if into is None:
        return []
    owner = _NO_ONE if state is None else owner_of(state)
    held = into.outlet.look(into.output, into.columns, owner)
    return [] if plan.backfill is not None else list(held)


def hand_over(plan: Flow, state: StateRecord) -> None:
    """Make the outputs of a plan those of a state which replaces another one.

    Raises:
        SinkError: One cannot be written.
    """
    into = column_output(only_sink(plan))
    if into is not None:
        into.outlet.hand_over(into.output, into.columns, owner_of(state))


def owner_of(state: StateRecord) -> Owner:
    """Return whose batches those of a state are."""
    return Owner(state=state.state_id, generation=state.generation)


def replaced_by(plan: Flow, table: TableParams, wanted: Backfill, state: StateRecord) -> Replaced:
    """Return the rows that a backfill replaces."""
    topic = driving_source(plan).name
    goal = state.goal.get(topic, {})
    return Replaced(
        partitions=frozenset(partitions_between(wanted.start, wanted.end, table.partition)),
        source=SOURCE,
        read={p: (first, goal[p]) for p, first in state.start[topic].items() if p in goal},
        unknown=wanted.force,
    )
