"""Restores a state from checkpoints where this machine has none, or an outdated one."""

import json
import logging
import shutil
import time
from collections.abc import Callable, Sequence
from pathlib import Path

from kaflow_engine.flow.flow import Flow
from kaflow_engine.model.config import Config, S3Config
from kaflow_engine.state.checkpoints.checkpoints import Checkpoints, Head, Listed, Tell, write_small
from kaflow_engine.state.log.approval import OLD
from kaflow_engine.state.log.batch_log import FIRST, STATE, BatchLog, StateRecord
from kaflow_engine.state.storage.bucket import BucketAway, BucketSettings
from kaflow_engine.state.storage.store import Damaged, LocalStore

LOGGER = logging.getLogger("kaflow.checkpoints")

RESTORED = "restored.json"
"""There until the batches behind a checkpoint have run: they may have been delivered already."""

_STAY = ("lease", OLD)
_EVERY_S = 5.0


def is_outdated(local: StateRecord | None, last: int, head: Head) -> bool:
    """Tell whether a local state lacks batches that only the checkpoints have.

    Args:
        local: The record of the local state; None: there is none.
        last: Its last batch.
        head: Of the checkpoints.
    """
    if local is None:
        return True
    if local.state_id != head.state_id:
        return False  # another one, begun since on purpose
    if local.generation != head.generation:
        return local.generation < head.generation
    return bool(head.checkpoints) and last < head.checkpoints[-1].batch


def open_checkpoints(config: Config, plan: Flow) -> Checkpoints | None:
    """Return where a pipeline's checkpoints are; None if none are wanted."""
    checkpoint = config.state.rocksdb.checkpoint
    if not (checkpoint.enabled and checkpoint.s3.enabled) or plan.backfill is not None:
        return None
    return checkpoints_of(checkpoint.s3, plan.pipeline)


def checkpoints_of(s3: S3Config, pipeline: str) -> Checkpoints:
    """Return the checkpoints of the pipeline with an id."""
    settings = BucketSettings(
        bucket=s3.bucket or "",
        prefix=s3.prefix,
        region=s3.region,
        endpoint=s3.endpoint,
        access_key=s3.access_key,
        secret_key=s3.secret_key,
    )
    return Checkpoints(settings, pipeline)


def bring_back(store: LocalStore, checkpoints: Checkpoints, begins: Callable[[], None]) -> None:
    """Restore the newest sound checkpoint if the local state is missing or outdated.

    Args:
        store: The state directory.
        checkpoints: Where to take it from.
        begins: Called before a restore begins.

    Raises:
        Damaged: No checkpoint is sound.
        BucketAway: The store does not answer, and there is no local state to go on with.
    """
    log = BatchLog(store)
    local = log.load_state()
    try:
        found = checkpoints.head()
    except BucketAway as error:
        if local is None:
            raise
        LOGGER.warning("going on with the local state: %s", error.message)
        return
    if found and is_outdated(local, log.next_number() - 1, found[0]):
        begins()
        restore(store, checkpoints, found[0], found[0].checkpoints)


def restore(
    store: LocalStore,
    checkpoints: Checkpoints,
    head: Head,
    choice: Sequence[Listed],
    tell: Tell | None = None,
) -> int:
    """Make a state directory what it was at a checkpoint; interrupted, it holds no state.

    Args:
        store: The state directory.
        checkpoints: Where to take it from.
        head: What counts there.
        choice: Checkpoints to try, best first; none: the state as it began.
        tell: Called with progress; None: the log is.

    Returns:
        The batch after which the state is.

    Raises:
        Damaged: None of them is sound.
        BucketAway: The store does not answer.
    """
    start = time.monotonic()
    for place, listed in enumerate(choice):
        _clear(store)
        try:
            checkpoints.restore(listed, store, tell or _logged(listed))
            break
        except Damaged as error:
            if place == len(choice) - 1:
                raise
            LOGGER.warning("checkpoint of batch %d is not used: %s", listed.batch, error.message)
    else:
        _clear(store)
        listed = None
    batch = listed.batch if listed else FIRST - 1
    store.put(RESTORED, json.dumps({"batch": batch}).encode())
    for file in sorted(head.files, key=lambda file: file.name == STATE):
        write_small(store, file)
    LOGGER.info(
        "restored the state of pipeline '%s' as it was after batch %d in %.1f s",
        checkpoints.pipeline,
        batch,
        time.monotonic() - start,
    )
    return batch


def _clear(store: LocalStore) -> None:
    store.delete(STATE)
    root: Path = store.path("")
    for path in root.iterdir() if root.is_dir() else ():
        if path.name in _STAY:
            continue
        if path.is_dir():
            shutil.rmtree(path)
        else:
            path.unlink()


def _logged(listed: Listed) -> Tell:
    said = time.monotonic()

    def tell(done: int, whole: int) -> None:
        nonlocal said
        if time.monotonic() - said > _EVERY_S:
            said = time.monotonic()
            LOGGER.info("restoring batch %d: %d of %d MiB", listed.batch, done >> 20, whole >> 20)

    return tell
