"""Drops a state: its directory, and what the log of runs remembers of its deliveries.

The directory goes first. Interrupted in between, a start is refused, because the log knows of
deliveries from a state that is gone, and dropping again goes on.
"""

import shutil
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from kaflow_engine.model.config import Config
from kaflow_engine.runtime.sink.bookkeeping import run_log_found
from kaflow_engine.runtime.takeover.restore import checkpoints_of
from kaflow_engine.state.log.batch_log import STATE, BatchLog
from kaflow_engine.state.storage.lease import LEASE, hold_lease
from kaflow_engine.state.storage.store import LocalStore


@dataclass(frozen=True, slots=True, kw_only=True)
class Remembered:
    """What there is to drop."""

    id: str
    """Of the pipeline."""
    directory: Path
    states: frozenset[tuple[str, int]]
    """State id and generation of all that has delivered."""


def remembered(config: Config, pipeline_id: str, directory: Path) -> Remembered:
    """Return what there is to drop.

    Raises:
        SourceError: No broker answers.
    """
    with run_log_found(config, pipeline_id, BatchLog(LocalStore(directory))) as control:
        return Remembered(id=pipeline_id, directory=directory, states=frozenset(control.states()))


def drop(config: Config, found: Remembered) -> int:
    """Drop a state; return how many notes of deliveries and batches the log held.

    Raises:
        StateError: The pipeline runs.
        SourceError: No broker answers.
        SinkError: Another run starts at the same time.
        BucketAway: Its checkpoints cannot be removed.
    """
    log = BatchLog(LocalStore(found.directory))
    with hold_lease(found.directory), run_log_found(config, found.id, log) as control:
        control.ensure()
        control.start_run("", 0)  # no one else writes from here on
        s3 = config.state.rocksdb.checkpoint.s3
        if s3.enabled:  # else the next start would restore it
            checkpoints_of(s3, found.id).drop()
        (found.directory / STATE).unlink(missing_ok=True)
        for path in found.directory.iterdir():
            if path.name != LEASE:
                shutil.rmtree(path) if path.is_dir() else path.unlink(missing_ok=True)
        gone = control.forget(control.states() | found.states)
        # a start takes a lease of its own from here on, and then there is a directory that stays
        (found.directory / LEASE).unlink()
        with suppress(OSError):
            found.directory.rmdir()
    return gone
