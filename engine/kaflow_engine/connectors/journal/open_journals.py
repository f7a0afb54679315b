"""The journals that this process writes: who reads one in the same process asks it for its end."""

import time
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path

from kaflow_engine.connectors.journal.journal import Journal

_OPEN: dict[Path, Journal] = {}


@contextmanager
def open_journal(folder: Path) -> Generator[Journal]:
    """Have a journal to write, to the end of the block.

    Raises:
        StateError: It cannot be read or written.
    """
    journal = Journal(folder, round(time.time() * 1000))
    _OPEN[folder] = journal
    try:
        yield journal
    finally:
        del _OPEN[folder]
        journal.close()


def written_here(folder: Path) -> Journal | None:
    """Return a journal that this process writes."""
    return _OPEN.get(folder)
