"""Standby: waits for the leases of pipelines that another process runs."""

from collections.abc import Callable, Iterable
from pathlib import Path
from threading import Event

from kaflow_engine.errors import StateHeld
from kaflow_engine.state.storage.lease import Leases

LOOK_S = 1.0
"""Seconds between two tries."""


def stand_by(
    root: Path,
    pipelines: Iterable[str],
    stop: Event,
    on_wait: Callable[[StateHeld], None],
    every: float = LOOK_S,
) -> Leases | None:
    """Wait until no other process holds the state of one of the pipelines, and take all of them.

    The lease is a lock of the file system, which the system lets go of when its process ends,
    however it ends.

    Args:
        root: Where states are.
        pipelines: The ids of all pipelines of this process: it runs all of them, or none.
        stop: Set it to give up.
        on_wait: Gets the reason at first, and when it changes.
        every: Seconds between two tries.

    Returns:
        The leases; None where `stop` was set.

    Raises:
        StateError: A state directory cannot be written.
    """
    leases = Leases(root, pipelines)
    said = ""
    while not stop.is_set():
        try:
            return leases.take()
        except StateHeld as held:
            if held.message != said:
                said = held.message
                on_wait(held)
        stop.wait(every)
    return None
