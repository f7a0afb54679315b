"""Rebuilds a state after an approval: the old one ends, and is set aside."""

import logging
import shutil
from collections.abc import Collection, Mapping
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

from kaflow_engine.connectors.connections import Connections
from kaflow_engine.connectors.run_log import RunLog
from kaflow_engine.connectors.sources.contract import KEPT
from kaflow_engine.errors import StateError
from kaflow_engine.flow.flow import Flow
from kaflow_engine.model.config import Config
from kaflow_engine.plan.evolution.evolution import inherit
from kaflow_engine.runtime.batch.position import load_standing
from kaflow_engine.runtime.drive.bounded import new_backfill_state
from kaflow_engine.runtime.planning.plan_codec import decided, plan_of
from kaflow_engine.runtime.sink.opening import connections_of
from kaflow_engine.runtime.sink.outputs import hand_over, look_at_outputs
from kaflow_engine.runtime.source.history import Histories
from kaflow_engine.runtime.source.inputs import Inputs
from kaflow_engine.runtime.source.offsets import merged, only
from kaflow_engine.runtime.takeover.fencing import last_epoch
from kaflow_engine.runtime.takeover.open_state import NewState, PlanChange, new_stream_state
from kaflow_engine.runtime.takeover.read_before import from_positions
from kaflow_engine.runtime.tasks.outputs import NO_CONNECTIONS
from kaflow_engine.state.log.approval import (
    Approval,
    Rebuild,
    begin_rebuild,
    end_rebuild,
    load_approval,
    set_aside,
)
from kaflow_engine.state.log.batch_log import BatchLog, StateRecord
from kaflow_engine.state.storage.store import LocalStore

LOGGER = logging.getLogger("kaflow.runtime")


@dataclass(frozen=True, slots=True, kw_only=True)
class Approved:
    """A rebuild that may begin."""

    approval: Approval
    state: StateRecord
    plan: Flow
    """Of the old state."""


def approved_rebuild(
    log: BatchLog, plan: Flow, change: PlanChange, connections: Connections = NO_CONNECTIONS
) -> Approved | None:
    """Return the rebuild that the change of a plan needs, and that someone approved.

    Args:
        log: Of the state that is there.
        plan: What is to run.
        change: Raises StateError where the state does not fit.
        connections: Where outside systems are.

    Raises:
        Damaged: The state, its plan or the decision cannot be read.
        SinkError: The table cannot be written with this plan.
    """
    state, approval = log.load_state(), load_approval(log.store)
    if state is None or approval is None or approval.old != state.fingerprint:
        return None
    old = plan_of(log.load_plan(state.fingerprint))
    new = inherit(old, plan)
    if decided(new) != approval.new:
        return None
    try:
        change(old, new)
    except StateError:
        # The old state stays where the new one could not write.
        look_at_outputs(new, None, connections)
        return Approved(approval=approval, state=state, plan=old)
    return None


def begin(
    log: BatchLog, state: StateRecord, approval: Approval, moved: Collection[str] = ()
) -> Rebuild:
    """Note where the old state ended, and use up the decision.

    Args:
        log: Of the old state; no batch is open.
        state: The old state.
        approval: What was decided.
        moved: Inputs that come from somewhere else now, which have not ended anywhere.
    """
    standing = load_standing(log, state)
    ended = {name: at for name, at in standing.offsets.items() if name not in moved}
    rebuild = Rebuild(
        approval=approval,
        state_id=state.state_id,
        generation=state.generation,
        epoch=last_epoch(log),
        offsets=ended,
        topic_ids=standing.topic_ids,
    )
    begin_rebuild(log.store, rebuild)
    return rebuild


def replace_state(
    rebuild: Rebuild,
    store: LocalStore,
    control: RunLog,
    plan: Flow,
    state: StateRecord,
    connections: Connections = NO_CONNECTIONS,
) -> None:
    """Let every sink forget the old state, which the one at hand replaces.

    Args:
        rebuild: What is carried out.
        store: Of the new state.
        control: The pipeline's own topic, whose run has begun.
        plan: What is to run.
        state: The new one.
        connections: Where outside systems are.

    Raises:
        SinkError: A newer run has started, or a sink cannot be written.
    """
    hand_over(plan, state, connections)
    control.forget(rebuild.states)
    end_rebuild(store, rebuild)


def move_aside(directory: Path, rebuild: Rebuild) -> None:
    """Move the old state away; what sources have found stays where the new one goes on with it.

    Raises:
        StateError: It cannot be moved.
    """
    where = set_aside(directory, rebuild)
    for name in rebuild.offsets if rebuild.approval.begin == "continue" else ():
        if (found := where / KEPT / name).is_dir():
            shutil.copytree(found, directory / KEPT / name, dirs_exist_ok=True)
    LOGGER.warning(
        "the state of '%s' is rebuilt, as %s approved; the old one is in %s",
        rebuild.approval.pipeline,
        rebuild.approval.by,
        where,
    )


def new_state_of(
    plan: Flow,
    config: Config,
    inputs: Inputs,
    now: int,
    histories: Histories,
    rebuild: Rebuild | None,
) -> NewState:
    """Return what makes a state where there is none.

    Args:
        plan: What is to run.
        config: Says where event topics begin, unless the plan does.
        inputs: What it reads.
        now: Epoch milliseconds.
        histories: Where topics begin in files.
        rebuild: What is carried out, where a state is rebuilt.
    """
    if plan.backfill is not None:
        root = Path(config.state.rocksdb.path).absolute()
        return partial(new_backfill_state, plan, plan.backfill, root, inputs.topics, now, histories)
    reset = plan.auto_offset_reset or config.kafka.consumer.auto_offset_reset
    if rebuild is not None and rebuild.approval.begin != "continue":
        reset = rebuild.approval.begin
    new_state = partial(new_stream_state, plan, inputs, reset, now, histories)
    if rebuild is not None:
        return continued(new_state, plan, rebuild)
    return from_positions(new_state, plan, inputs, connections_of(config))


def continued(new_state: NewState, plan: Flow, rebuild: Rebuild) -> NewState:
    """Let events go on where the old state ended; dimensions are loaded again.

    Args:
        new_state: Makes a state that begins as the configuration says.
        plan: What is to run.
        rebuild: What is carried out.
    """
    if rebuild.approval.begin != "continue":
        return new_state
    events = frozenset(topic.name for topic in plan.sources if not topic.is_kept)

    def made(counts: Mapping[str, int]) -> StateRecord:
        fresh = new_state(counts)
        ended = only(rebuild.offsets, events & frozenset(counts))
        read = {topic: rebuild.topic_ids[topic] for topic in ended if topic in rebuild.topic_ids}
        start = merged(fresh.start, ended)
        return replace(fresh, start=start, topic_ids={**fresh.topic_ids, **read})

    return made
