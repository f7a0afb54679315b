"""Opens RocksDB copies of state partitions, and removes them."""

import shutil
import time
from pathlib import Path

from rocksdict import AccessType, Rdict

from kaflow_engine.errors import StateError
from kaflow_engine.state.copies.rocks import RocksCopy
from kaflow_engine.state.copies.rocks_errors import damage_mark, damaged, is_locked, translate
from kaflow_engine.state.copies.rocks_options import copy_options
from kaflow_engine.state.reader import StateRef


def open_copy(
    path: Path, ref: StateRef, *, to_read: bool = False, wait_s: float = 30.0
) -> RocksCopy:
    """Open, or create, the copy in a directory; close it, or use it in a `with`.

    Args:
        path: Its directory.
        ref: The state it should hold; whether it does, `foreign` tells.
        to_read: Only to read what is there: others may have it open as well.
        wait_s: How long to wait for another process that has it open.

    Raises:
        Damaged: It cannot be read; `wipe` it and build it again.
        StateError: It is still open elsewhere, or the disk is full or forbidden.
    """
    if damage_mark(path).exists():
        raise damaged(path)
    db = _open(path, time.monotonic() + wait_s, to_read)
    try:
        return RocksCopy(path, ref, db)
    except BaseException:
        db.close()
        raise


def wipe(path: Path) -> None:
    """Remove a copy that is closed."""
    shutil.rmtree(path, ignore_errors=True)
    damage_mark(path).unlink(missing_ok=True)


def _open(path: Path, deadline: float, to_read: bool) -> Rdict:
    access = AccessType.read_only() if to_read else AccessType.read_write()
    pause = 0.01
    while True:
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            return Rdict(str(path), copy_options(), access_type=access)
        except Exception as error:  # rocksdict raises nothing narrower
            if not is_locked(error):
                raise translate(path, error) from error
            if time.monotonic() > deadline:
                raise StateError(
                    f"state copy '{path}' is still open in another process",
                    hint=f"stop the earlier run's process: `fuser {path}/LOCK` names it",
                ) from error
        time.sleep(pause)
        pause = min(pause * 2, 0.25)
