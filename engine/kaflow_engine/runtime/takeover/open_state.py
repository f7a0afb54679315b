"""Opens the state of a pipeline: creates it at the first start, checks it at every other."""

import logging
from collections.abc import Callable, Mapping
from dataclasses import replace
from secrets import token_hex
from typing import Literal

from kaflow_engine.errors import StateError
from kaflow_engine.flow.flow import Flow
from kaflow_engine.plan.evolution.evolution import inherit
from kaflow_engine.runtime.planning.plan_codec import fingerprint, plan_of, plan_text
from kaflow_engine.runtime.source.history import Histories, begin_in_histories
from kaflow_engine.runtime.source.inputs import Inputs
from kaflow_engine.runtime.source.offsets import merged, only
from kaflow_engine.state.log.batch_log import BatchLog, StateRecord

LOGGER = logging.getLogger("kaflow.runtime")

Schemas = dict[str, dict[str, str]]
"""Topic to column to DuckDB type."""

PlanChange = Callable[[Flow, Flow], None]
"""Takes the plan of the state and the new one; raises StateError where the state does not fit."""

NewState = Callable[[Mapping[str, int]], StateRecord]
"""Takes topics with their partitions, and returns a state that has read nothing of them."""


def refuse_change(old: Flow, new: Flow) -> None:
    """Refuse every change of a plan."""
    raise StateError(
        f"the state of pipeline '{new.name}' belongs to another version of it",
        hint="take back the change, or give the pipeline a new `id:` to start a new state",
    )


def open_state(
    log: BatchLog,
    plan: Flow,
    inputs: Inputs,
    new_state: NewState,
    change: PlanChange = refuse_change,
) -> tuple[StateRecord, Flow]:
    """Return the state of a pipeline and the plan as it inherits that state.

    Args:
        log: The batch log.
        plan: What is to run.
        inputs: What it reads.
        new_state: Makes the state of a pipeline that has none, or of topics that were added.
        change: Asked when the state was made for another plan.

    Raises:
        StateError: The state does not fit the plan.
        SourceError: A topic does not exist, or no broker answers.
    """
    state = log.load_state()
    counts = inputs.partitions(plan, new=state is None)
    if state is None:
        state = new_state(counts)
        log.save_plan(state.fingerprint, plan_text(plan))
        log.create_state(state)
        return state, plan
    if plan.partitions != state.partitions:
        LOGGER.warning(
            "pipeline '%s' keeps the %d partitions of its state",
            plan.name,
            state.partitions,
        )
        plan = replace(plan, partitions=state.partitions)
    mark = fingerprint(plan)
    if mark != state.fingerprint:
        old = plan_of(log.load_plan(state.fingerprint))
        plan = inherit(old, plan)
        mark = fingerprint(plan)
        if mark != fingerprint(old):  # an earlier version may have stored it in another form
            change(old, plan)
    added = {topic: count for topic, count in counts.items() if topic not in state.start}
    if added or mark != state.fingerprint:
        log.save_plan(mark, plan_text(plan))
        left = log.open_batch()
        last = log.next_number() - 1 if left is None else left.number
        state = _read_on(state, plan, new_state(added), last)
        log.replace_state(state)
    return state, plan


def _read_on(state: StateRecord, plan: Flow, fresh: StateRecord, batch: int) -> StateRecord:
    """Return the state for a plan, with the topics that it reads and no others.

    Args:
        state: Of another plan.
        plan: What is to run, as it inherits the state.
        fresh: Says where topics begin that the state does not have.
        batch: The last one that was begun.
    """
    names = frozenset(topic.name for topic in plan.sources)
    added = {topic: batch for topic in fresh.start}
    return replace(
        state,
        fingerprint=fingerprint(plan),
        start=merged(only(state.start, names), fresh.start),
        dimension_ends=merged(only(state.dimension_ends, names), fresh.dimension_ends),
        topic_ids={**only(state.topic_ids, names), **fresh.topic_ids},
        schemas=_grown(only(state.schemas, names), plan),
        added_behind={**only(state.added_behind, names), **added},
    )


def _grown(pinned: Schemas, plan: Flow) -> Schemas:
    """Return the columns that are pinned, and behind them those that a plan uses besides."""
    grown = {topic: dict(columns) for topic, columns in pinned.items()}
    for topic in plan.sources:
        known = grown.setdefault(topic.name, {})
        for column in topic.columns:
            known.setdefault(column.name, column.type)
    return grown


def new_stream_state(
    plan: Flow,
    inputs: Inputs,
    reset: Literal["earliest", "latest"],
    now: int,
    histories: Histories,
    counts: Mapping[str, int],
) -> StateRecord:
    """Return a state that begins where a stream does.

    Args:
        plan: What is to run.
        inputs: What it reads.
        reset: Where event topics begin.
        now: Epoch milliseconds.
        histories: Where topics begin in files.
        counts: Topic to its partitions.

    Raises:
        SourceError: No broker answers, or a history belongs to another topic.
    """
    dimensions = {t.name for t in plan.sources if t.is_kept}
    ids = inputs.ids(counts)  # before the offsets, which then cannot be of an earlier topic
    begin = inputs.offsets(counts, "earliest")
    if reset == "latest":
        whole = dimensions | inputs.finite(counts)  # a table is read from its first row
        events = {topic: count for topic, count in counts.items() if topic not in whole}
        begin = {**begin, **inputs.offsets(events, "latest")}
    loaded = {t: n for t, n in counts.items() if t in dimensions} if plan.dimensions_first else {}
    return StateRecord(
        state_id=token_hex(8),
        generation=1,
        partitions=plan.partitions,
        created_ms=now,
        start=begin_in_histories(begin, histories),
        dimension_ends=inputs.offsets(loaded, "latest"),
        schemas={t.name: {c.name: c.type for c in t.columns} for t in plan.sources},
        fingerprint=fingerprint(plan),
        topic_ids=ids,
    )
