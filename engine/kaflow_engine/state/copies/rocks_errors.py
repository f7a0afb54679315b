"""RocksDB's errors as errors of our own."""

import re
from collections.abc import Generator
from contextlib import contextmanager, suppress
from pathlib import Path

from kaflow_engine.errors import StateError
from kaflow_engine.state.storage.store import Damaged

_LOCKED = re.compile(r"lock hold by|while lock file", re.IGNORECASE)
_ENVIRONMENT = re.compile(
    r"No space left|Permission denied|Too many open files|Read-only file system|"
    r"Disk quota exceeded|Cannot allocate memory|File too large|Input/output error"
)


@contextmanager
def telling(path: Path) -> Generator[None]:
    """Turn what RocksDB raises into a StateError, and mark a copy that proves damaged.

    Args:
        path: Directory of the copy.
    """
    try:
        yield
    except StateError:
        raise
    except Exception as error:  # rocksdict raises nothing narrower
        translated = translate(path, error)
        if isinstance(translated, Damaged):
            with suppress(OSError):  # a full disk: then it is found damaged once more
                damage_mark(path).touch()
        raise translated from error


def translate(path: Path, error: Exception) -> StateError:
    """Return the error to raise for one of RocksDB's: Damaged, unless the machine is to blame."""
    found = _ENVIRONMENT.search(str(error))
    if found:
        return StateError(
            f"state copy '{path}' cannot be used: {found[0].lower()}",
            hint="check free space, permissions and limits of this machine",
        )
    return damaged(path)


def damaged(path: Path) -> Damaged:
    """Return the error for a copy that cannot be read."""
    hint = "start again: it is rebuilt from snapshot and change files"
    return Damaged(f"state copy '{path}' is damaged", hint=hint)


def is_locked(error: Exception) -> bool:
    """Tell whether another process, or an iterator of this one, has the copy open."""
    return _LOCKED.search(str(error)) is not None


def damage_mark(path: Path) -> Path:
    """Return the file that says that a copy was found damaged while it was in use."""
    return path.with_name(path.name + ".damaged")
