"""Private directories: state holds rows, so only its user may read it."""

import logging
import os
import stat
from pathlib import Path
from socket import gethostname

from kaflow_engine.errors import StateError

LOGGER = logging.getLogger("kaflow.state")

PRIVATE = 0o700


def make_private(folder: Path) -> None:
    """Create a folder for this user alone, unless it is there.

    Raises:
        OSError: It cannot be created.
    """
    folder.mkdir(mode=PRIVATE, parents=True, exist_ok=True)


def close_to_others(folder: Path) -> None:
    """Take the rights of other users from a folder; where that cannot be done, warn.

    A group that may write keeps its rights: someone has made the folder for several users.
    """
    found = stat.S_IMODE(folder.stat().st_mode)
    wanted = closed(found)
    if wanted == found:
        return
    try:
        os.chmod(folder, wanted)
    except OSError:
        LOGGER.warning("'%s' can be read by other users; chmod it to 0700", folder)
    else:
        LOGGER.info("'%s' was closed to other users", folder)


def closed(mode: int) -> int:
    """Return a mode without the rights of others.

    >>> [oct(closed(mode)) for mode in (0o755, 0o770, 0o777)]
    ['0o700', '0o770', '0o770']
    """
    return mode & ~(0o007 if mode & stat.S_IWGRP else 0o077)


def require_private(folder: Path) -> None:
    """Create a folder for this user alone, or make sure that what is in it was put there by it.

    Raises:
        StateError: It is a link, of another user, or others may write in it.
        OSError: It cannot be created.
    """
    make_private(folder)
    found = folder.lstat()
    if not stat.S_ISDIR(found.st_mode):
        raise _untrusted(folder, "is no folder")
    if found.st_uid != os.geteuid():
        raise _untrusted(folder, "belongs to another user")
    if found.st_mode & stat.S_IWOTH:
        raise _untrusted(folder, "can be written by other users")
    close_to_others(folder)


def _untrusted(folder: Path, why: str) -> StateError:
    return StateError(
        f"the folder of state copies '{folder}' on {gethostname()} {why}",
        hint="remove it, or set state.rocksdb.local to a folder of this user on each host; copies "
        "are built again",
    )
