"""What receivers of sources are tested with: a plan of one source, its journal, and patience."""

import json
import time
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

from kaflow_engine.connectors.journal.folder import journal_folder
from kaflow_engine.connectors.journal.journal import Journal
from kaflow_engine.connectors.journal.open_journals import written_here
from kaflow_engine.connectors.journal.source import JournalSource
from kaflow_engine.flow.flow import Flow
from kaflow_engine.flow.sources import JournalParams

PATIENCE_S = 60


def plan(**sources: JournalParams) -> Flow:
    """Return a plan that reads sources, and nothing else that receivers ask for."""
    named = [SimpleNamespace(name=name, connector=each) for name, each in sources.items()]
    return cast(Flow, SimpleNamespace(name="p", pipeline="p", sources=named))


def source(root: Path) -> JournalSource:
    """Return what reads the journal of source `s`."""
    return JournalSource(name="s", folder=journal_folder(root, "p", "s"))


def values(root: Path) -> list[Any]:
    """Return what was written down of source `s`, in its order."""
    read = source(root)
    found = read.read(read.start("earliest"), read.latest())
    return [json.loads(value) for value in found["value"].to_pylist()]


def journal(root: Path) -> Journal:
    """Return the journal of source `s`, which this process writes."""
    found = written_here(journal_folder(root, "p", "s"))
    assert found is not None
    return found


def until(holds: Callable[[], bool]) -> None:
    """Return once something holds."""
    deadline = time.monotonic() + PATIENCE_S
    while not holds():
        assert time.monotonic() < deadline
        time.sleep(0.01)
