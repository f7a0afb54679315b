"""What a command holds while it changes the state of a pipeline that is stopped.

It takes the lease, so that no one runs the pipeline on this machine, and a run epoch in the
log of runs, which fences whatever an earlier run has left, wherever it is.
"""

from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from kaflow_engine.model.config import Config
from kaflow_engine.runtime.maintenance.catalog import (
    FoundState,
    log_of,
    readable,
    refuse_running,
    snapshots_of,
)
from kaflow_engine.runtime.planning.plan_codec import plan_of
from kaflow_engine.runtime.sink.bookkeeping import open_plan, run_log_of
from kaflow_engine.runtime.sink.opening import connections_of
from kaflow_engine.runtime.sink.outputs import fence_outputs
from kaflow_engine.runtime.takeover.fencing import check_start, last_epoch
from kaflow_engine.state.log.batch_log import BatchLog, StateRecord
from kaflow_engine.state.storage.lease import hold_lease
from kaflow_engine.state.storage.store import Store


@dataclass(frozen=True, slots=True, kw_only=True)
class Offline:
    """The state of a pipeline that no one runs."""

    directory: Path
    log: BatchLog
    snapshots: Store
    state: StateRecord


@contextmanager
def held(found: FoundState, doing: str) -> Generator[Offline]:
    """Hold the lease of a state to the end of the block.

    Args:
        found: The state.
        doing: What for, such as `rescaled`.

    Raises:
        StateError: The pipeline runs, or the state cannot be read.
    """
    refuse_running(found, doing)
    with hold_lease(found.directory):
        readable(found)
        log = log_of(found)
        state = log.load_state()
        assert state is not None, "find_state has seen it"
        snapshots = snapshots_of(found)
        yield Offline(directory=found.directory, log=log, snapshots=snapshots, state=state)


def take_epoch(config: Config, found: FoundState, at: Offline) -> int:
    """Take the next run epoch, and fence all earlier runs.

    Args:
        config: Where the broker is.
        found: The state; a batch of it that is open must have no effect.
        at: The same, held.

    Raises:
        SourceError: No broker answers.
        SinkError: Another run starts at the same time.
        StateError: The log lacks batches that were delivered, or another state has delivered.
    """
    plan = plan_of(at.log.load_plan(at.state.fingerprint))
    connections = connections_of(config)
    with run_log_of(config, plan, open_plan(at.log)) as control:
        control.ensure()
        start = control.start_run(
            at.state.state_id,
            at.state.generation,
            partial(check_start, at.log, at.state, plan, None, False, connections=connections),
            after=last_epoch(at.log),
        )
    if fence_outputs(plan, at.state, at.log.store, connections, start.epoch):
        check_start(at.log, at.state, plan, None, False, start, connections=connections)
    return start.epoch
