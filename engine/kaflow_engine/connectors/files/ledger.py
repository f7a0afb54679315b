"""What a folder says of its files: whose it is, and which batch was the last.

The ledger is written before files get their names, so that whatever is visible is known there. Who
reads and writes it holds a lock, and goes on only as the newest run.
"""

import fcntl
import json
import os
import time
from collections.abc import Generator, Mapping
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path

from kaflow_engine.connectors.contract import Owner
from kaflow_engine.connectors.files.errors import FolderUnfit
from kaflow_engine.connectors.holding import Holding
from kaflow_engine.errors import SinkError, TakenOver

OWN = "_kaflow"
"""The folder in that of an output which holds the ledger, and files that are not whole."""
TRIES = "tries"
"""The folder in that one of files that have no names yet, called `<epoch>-<batch>-….tmp`."""
_LEDGER, _LOCK = "ledger", "lock"  # not .json: whoever reads **/*.json would take it for rows
_WAIT_S, _PAUSE_S = 10.0, 0.05


@dataclass(frozen=True, slots=True, kw_only=True)
class Entry:
    """The last batch of the state that a folder belongs to."""

    state: str
    generation: int
    epoch: int
    batch: int = 0
    mark: str = ""
    files: Mapping[str, int] = field(default_factory=dict[str, int])
    """Of the batch: name below the folder → rows."""

    def is_of(self, owner: Owner) -> bool:
        """Tell whether it is of a state."""
        return (self.state, self.generation) == (owner.state, owner.generation)


class Ledger:
    """The ledger of one folder."""

    def __init__(self, folder: Path, owner: Owner) -> None:
        self._folder, self._owner = folder, owner

    def entry(self) -> Entry | None:
        """Return what it says; None: no run has begun there.

        Raises:
            FolderUnfit: It is damaged.
        """
        file = self._folder / OWN / _LEDGER
        try:
            return Entry(**json.loads(file.read_bytes()))
        except FileNotFoundError:
            return None
        except (ValueError, TypeError) as error:
            raise FolderUnfit(
                f"'{file}' is damaged",
                hint="restore it, or give the output another folder",
            ) from error

    def holdings(self) -> tuple[Holding, ...]:
        """Return what the folder holds, from whatever state."""
        found = self.entry()
        if found is None:
            return ()
        return (
            Holding(
                state=found.state,
                generation=found.generation,
                batch=found.batch,
                mark=found.mark,
                table=self._folder.name,
                kept_in="folder",
            ),
        )

    def begin(self) -> None:
        """Make the folder that of a run: no earlier one adds anything from now on.

        What tasks of other runs have left is removed.

        Raises:
            TakenOver: A newer run has begun.
        """
        with self._locked():
            found, owner = self.entry(), self._owner
            if found is not None and found.epoch > owner.epoch:
                raise self._taken_over()
            if found is None or not found.is_of(owner):
                found = self._nothing(owner.epoch)
            self.write(replace(found, epoch=owner.epoch))
            for path in (self._folder / OWN / TRIES).glob("*.tmp"):
                if int(path.name.split("-")[0]) != owner.epoch:
                    path.unlink(missing_ok=True)
            sync(self._folder)
            sync(self._folder.parent)

    def hand_over(self) -> None:
        """Make the folder that of another state: whoever had it can add no more."""
        with self._locked():
            self.write(self._nothing(0))

    @contextmanager
    def held(self) -> Generator[Entry]:
        """Give what it says to the newest run, and let no other begin until the end of the block.

        Raises:
            TakenOver: Another run has begun.
        """
        with self._locked():
            found = self.entry()
            if found is None or not found.is_of(self._owner) or found.epoch != self._owner.epoch:
                raise self._taken_over()
            yield found

    def write(self, entry: Entry) -> None:
        """Replace what it says, at once and for good."""
        place = self._folder / OWN
        new = place / f"{_LEDGER}.new"
        with new.open("wb") as file:
            file.write(json.dumps(asdict(entry)).encode())
            file.flush()
            os.fsync(file.fileno())
        new.replace(place / _LEDGER)
        sync(place)

    def _nothing(self, epoch: int) -> Entry:
        owner = self._owner
        return Entry(state=owner.state, generation=owner.generation, epoch=epoch)

    @contextmanager
    def _locked(self) -> Generator[None]:
        place = self._folder / OWN
        place.mkdir(parents=True, exist_ok=True)
        with (place / _LOCK).open("ab") as file:
            until = time.monotonic() + _WAIT_S
            while not _lock(file.fileno()):
                if time.monotonic() > until:
                    raise SinkError(f"another process holds folder '{self._folder}'")
                time.sleep(_PAUSE_S)
            yield

    def _taken_over(self) -> TakenOver:
        return TakenOver(
            f"another run has taken over folder '{self._folder.name}'",
            hint="a pipeline has one run at a time; stop this one",
        )


def _lock(handle: int) -> bool:
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def sync(folder: Path) -> None:
    """Let the names in a folder reach the disk."""
    handle = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
