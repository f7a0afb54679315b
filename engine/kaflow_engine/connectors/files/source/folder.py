"""Which files a path names, and whether they are whole."""

import os
import re
from collections.abc import Iterator
from dataclasses import dataclass
from glob import glob
from pathlib import Path

from kaflow_engine.errors import SourceAway, SourceUnfit

_PATTERN = re.compile(r"[*?\[]")
_HIDDEN = (".", "_")
"""What names begin with of files that are no data: those of writers on their way, and markers."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Seen:
    """A file as a look at its folder finds it."""

    path: str
    size: int
    changed: int
    """When it was written to last, in epoch nanoseconds."""


def look(path: str) -> list[Seen]:
    """Return the files that a path names, by name; of a folder all that are in it and below.

    Raises:
        SourceUnfit: The folder does not exist.
        SourceAway: It cannot be read now.
    """
    try:
        return sorted(_seen(path), key=lambda file: file.path)
    except OSError as error:
        raise SourceAway(f"'{path}' cannot be read: {error.strerror or error}") from error


def state_of(path: str) -> Seen | None:
    """Return a file as it is now; None: there is none."""
    try:
        found = os.stat(path)
    except OSError:
        return None
    return Seen(path=path, size=found.st_size, changed=found.st_mtime_ns)


def _seen(path: str) -> Iterator[Seen]:
    if _PATTERN.search(path):
        base = Path(path[: _PATTERN.search(path).start()]).parent  # type: ignore[union-attr]
        names: Iterator[str] = iter(glob(path, recursive=True))
    elif os.path.isfile(path):
        base, names = Path(path).parent, iter([path])
    elif os.path.isdir(path):
        base, names = Path(path), _below(path)
    else:
        raise SourceUnfit(
            f"there is no folder '{path}'", hint="create it, or fix `path` of the source"
        )
    for name in names:
        parts = Path(name).relative_to(base).parts
        if any(part.startswith(_HIDDEN) for part in parts) or not os.path.isfile(name):
            continue
        if (found := state_of(name)) is not None:
            yield found


def _below(folder: str) -> Iterator[str]:
    for above, _, files in os.walk(folder):
        for file in files:
            yield os.path.join(above, file)
