"""Checks that the hosts of a cluster share the driver's state directory."""

from pathlib import Path
from socket import gethostname

from kaflow_engine.errors import StateError
from kaflow_engine.state.log.batch_log import BatchLog
from kaflow_engine.state.reader import StateRef
from kaflow_engine.state.storage.store import LocalStore


def check_shared(directory: Path, ref: StateRef) -> None:
    """Make sure, before a task does anything, that it would do it where the driver looks.

    Args:
        directory: The state directory of the pipeline.
        ref: The state that the driver has opened there.

    Raises:
        StateError: There is nothing, or another state.
    """
    found = BatchLog(LocalStore(directory)).load_state()
    if found is None or found.state_id != ref.state_id:
        there = "nothing" if found is None else "another state"
        raise StateError(
            f"an executor on {gethostname()} finds {there} in the state directory '{directory}'",
            hint="on a cluster state.rocksdb.path must be the same shared folder for the driver "
            "and all executors",
        )
