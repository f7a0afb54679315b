"""Where journals are, and files beside them that are written whole."""

import os
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO

from kaflow_engine.errors import StateError

_ENDED = "ended"
JOURNALS = ".journals"
"""The folder of all journals, beside the states: a state that goes leaves what was acknowledged."""


def journal_folder(root: Path, pipeline_id: str, source: str) -> Path:
    """Return where the journal of a source is, below the folder of all states."""
    return root / JOURNALS / pipeline_id / source


def ended_by(folder: Path) -> str | None:
    """Return the kind of source that has given a journal all it ever will; None: more may come."""
    try:
        return (folder / _ENDED).read_text()
    except FileNotFoundError:
        return None


def mark_ended(folder: Path, kind: str | None) -> None:
    """Note which kind of source has given a journal all it ever will; None: more may come.

    Raises:
        StateError: It cannot be written.
    """
    mark = folder / _ENDED
    try:
        if kind is None:
            mark.unlink(missing_ok=True)
        else:
            with whole_file(mark) as file:
                file.write(kind.encode())
    except OSError as error:
        reason = (error.strerror or str(error)).lower()
        raise StateError(
            f"'{mark}' cannot be written: {reason}",
            hint="check free space and permissions of this folder",
        ) from error


@contextmanager
def whole_file(path: Path) -> Generator[BinaryIO]:
    """Give a file to write, which is there, and survives a power cut, when the block ends; if it
    fails, what was there before stays.

    Raises:
        OSError: It cannot be written.
    """
    begun = path.with_suffix(".begun")
    with begun.open("wb") as file:
        yield file
        file.flush()
        os.fsync(file.fileno())
    begun.rename(path)
    handle = os.open(path.parent, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
