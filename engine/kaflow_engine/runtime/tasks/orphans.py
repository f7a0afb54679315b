"""Ends worker processes whose Spark is gone."""

import os
import threading
import time

_PAUSE_S = 0.5
_started = False


def watch_parent() -> None:
    """End this process soon after its parent ended; call it as often as you like.

    A killed driver takes its JVM along, and that its Python daemon, but a worker in the middle of
    a task would go on writing.
    """
    global _started
    if not _started:
        _started = True
        parent = os.getppid()
        threading.Thread(target=_watch, args=(parent,), name="orphan-watch", daemon=True).start()


def _watch(parent: int) -> None:
    while os.getppid() == parent:
        time.sleep(_PAUSE_S)
    os._exit(1)
