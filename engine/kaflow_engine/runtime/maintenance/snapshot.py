"""A snapshot of a pipeline that is stopped.

No epoch is taken: nothing of the log changes, and a run elsewhere must not be fenced for it.
"""

from collections.abc import Callable

from kaflow_engine.errors import StateError
from kaflow_engine.runtime.batch.position import load_standing
from kaflow_engine.runtime.batch.snapshots import SnapshotKeeper, in_this_process, state_partitions
from kaflow_engine.runtime.maintenance.exclusive import Offline
from kaflow_engine.runtime.planning.plan_codec import plan_of
from kaflow_engine.state.log.batch_log import FIRST


def snapshot_now(at: Offline, now: int, say: Callable[[str], None] = lambda text: None) -> int:
    """Take a snapshot behind the last batch that is done; return the batch.

    Args:
        at: The state.
        now: Epoch milliseconds.
        say: Called with what is done.

    Raises:
        StateError: No batch is done yet, or the state cannot be read.
    """
    standing = load_standing(at.log, at.state)
    if standing.batch < FIRST:
        raise StateError("there is nothing to copy: no batch is done yet", hint="run the pipeline")
    plan = plan_of(at.log.load_plan(at.state.fingerprint))
    say(f"copying {len(state_partitions(plan))} partitions")
    take = in_this_process(at.directory, at.state.ref, at.log, at.snapshots)
    keeper = SnapshotKeeper(take, at.log, at.state.ref, at.snapshots, 0)
    keeper.take(plan, standing, now)
    return standing.batch
