"""Finds the states below a state directory by the id or name of their pipeline."""

import json
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from kaflow_engine.errors import KaflowError, StateError, StateHeld, UnknownName
from kaflow_engine.model.config import Config
from kaflow_engine.plan.evolution.start_decision import StoredState, read_state, stored_plan
from kaflow_engine.state.log.batch_log import STATE, BatchLog
from kaflow_engine.state.storage.lease import find_holder
from kaflow_engine.state.storage.store import LocalStore, Store


@dataclass(frozen=True, slots=True, kw_only=True)
class FoundState:
    """A state directory, and what it holds."""

    id: str
    """Of the pipeline; the name of the directory."""
    name: str
    """Of the pipeline, as its plan says; the id where the plan cannot be read."""
    stored: StoredState

    @property
    def directory(self) -> Path:
        """Where it is."""
        return self.stored.directory


def state_root(config: Config) -> Path:
    """Return the folder of all states."""
    return Path(config.state.rocksdb.path).absolute()


def find_states(root: Path) -> list[FoundState]:
    """Return all states under a folder, by id; those that are damaged too."""
    if not root.is_dir():
        return []
    folders = sorted(path for path in root.iterdir() if (path / STATE).is_file())
    return [found_state(folder) for folder in folders]


def found_state(directory: Path) -> FoundState:
    """Return what a directory holds."""
    stored = read_state(directory)
    try:
        name = str(json.loads(stored_plan(stored) or "{}")["name"])
    except (KaflowError, KeyError, ValueError):
        name = directory.name
    return FoundState(id=directory.name, name=name, stored=stored)


def find_state(root: Path, name: str) -> FoundState:
    """Return the state of the pipeline with an id or a name.

    Raises:
        UnknownName: There are states, but none is called like this.
        StateError: There is no state at all.
    """
    found = find_states(root)
    for each in (*(e for e in found if e.id == name), *(e for e in found if e.name == name)):
        return each
    if not found:
        raise StateError(
            f"there is no state in '{root}'",
            hint="run a pipeline first, or name another folder: --set state.rocksdb.path=…",
        )
    raise UnknownName("state", name, {n for each in found for n in (each.id, each.name)})


def readable(found: FoundState) -> FoundState:
    """Return a state that can be read.

    Raises:
        StateError: It cannot.
    """
    if found.stored.damage is not None:
        raise StateError(
            f"the state of pipeline '{found.name}' cannot be read: {found.stored.damage}",
        )
    return found


def refuse_running(found: FoundState, doing: str) -> None:
    """Refuse to work on the state of a pipeline that runs.

    Args:
        found: The state.
        doing: What for, such as `rescaled`.

    Raises:
        StateHeld: Someone holds its lease; says who.
    """
    holder = find_holder(found.directory)
    if holder is not None:
        raise StateHeld(
            f"pipeline '{found.name}' runs ({holder}), and its state cannot be {doing} meanwhile",
            hint="stop it first: Ctrl-C or SIGTERM let it finish its batch",
        )


def bytes_in(folder: Path, parts: Iterable[str] = ("",)) -> int:
    """Return the bytes that files under a folder take on disk; hard links count once."""
    seen: dict[tuple[int, int], int] = {}
    for part in parts:
        for path in (folder / part).rglob("*"):
            try:
                about = path.stat()
            except OSError:  # a run may be removing it
                continue
            if path.is_file():
                seen[about.st_dev, about.st_ino] = about.st_size
    return sum(seen.values())


def log_of(found: FoundState) -> BatchLog:
    """Return the batch log of a state."""
    return BatchLog(LocalStore(found.directory))


def snapshots_of(found: FoundState) -> Store:
    """Return where the snapshots of a state are: beside its log."""
    return log_of(found).store
