"""Files in a folder of the warehouse: staged below it, and renamed."""

import fcntl
import os
import time
from collections.abc import Generator, Iterable, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from secrets import token_hex
from typing import BinaryIO

from kaflow_engine.connectors.contract import Output, Owner
from kaflow_engine.connectors.files.errors import FolderUnfit
from kaflow_engine.connectors.files.place import LEDGER, OWN, NewFile, Write
from kaflow_engine.connectors.read_back import nothing_there
from kaflow_engine.errors import SinkError

TRIES = f"{OWN}/tries"
"""The folder of files that have no names yet, called `<epoch>-<batch>-….tmp`."""
_LOCK = f"{OWN}/lock"
_WAIT_S, _PAUSE_S = 10.0, 0.05


class FolderOfWarehouse:
    """A folder that the driver and all executors see."""

    def __init__(self, output: Output) -> None:
        self._output, self._folder = output, folder_of(output)

    def __str__(self) -> str:
        return str(self._folder)

    def require_fit(self) -> None:
        """Refuse a folder that cannot be written, or is a table."""
        folder, name = self._folder, self._output.name
        if not folder.exists():
            return
        if not folder.is_dir():
            raise FolderUnfit(
                f"'{folder}' of output '{name}' is no folder", hint="give it another `folder`"
            )
        if (folder / "_delta_log").exists():
            raise FolderUnfit(
                f"'{folder}' of output '{name}' is a Delta table, whose files only commits name",
                hint="give the output another `folder`, or write `table:` instead",
            )
        with suppress(OSError):
            if os.access(folder, os.W_OK | os.X_OK):
                return
        raise FolderUnfit(
            f"'{folder}' of output '{name}' may not be written",
            hint="give the user that runs the pipeline the right to, or set another `warehouse`",
        )

    @contextmanager
    def exclusive(self) -> Generator[None]:
        """Hold the lock of the folder.

        Raises:
            SinkError: Another process holds it.
        """
        (self._folder / OWN).mkdir(parents=True, exist_ok=True)
        with (self._folder / _LOCK).open("ab") as file:
            until = time.monotonic() + _WAIT_S
            while not _lock(file.fileno()):
                if time.monotonic() > until:
                    raise SinkError(f"another process holds folder '{self._folder}'")
                time.sleep(_PAUSE_S)
            yield

    def read_ledger(self) -> tuple[bytes, str] | None:
        """Return the ledger; None: there is none."""
        with suppress(FileNotFoundError):
            return (self._folder / LEDGER).read_bytes(), ""
        return None

    def write_ledger(self, data: bytes, replacing: str | None) -> str:
        """Replace the ledger: under the lock, no one else does."""
        place = self._folder / LEDGER
        new = place.with_name(f"{place.name}.new")
        with new.open("wb") as file:
            file.write(data)
            _reach_disk(file)
        new.replace(place)
        _sync(place.parent)
        return ""

    def stage(self, name: str, epoch: int, batch: int, write: Write) -> str:
        """Write a file where no reader looks."""
        path = f"{TRIES}/{epoch}-{batch}-{token_hex(8)}.tmp"
        (self._folder / path).parent.mkdir(parents=True, exist_ok=True)
        with (self._folder / path).open("xb") as file:
            write(file)
            _reach_disk(file)
        return path

    def publish(self, files: Sequence[NewFile]) -> None:
        """Rename files."""
        for file in files:
            self._give_name(file)
        self._sync_names(file.name for file in files)

    def _give_name(self, file: NewFile) -> None:
        target = self._folder / file.name
        target.parent.mkdir(parents=True, exist_ok=True)
        try:
            (self._folder / file.staged).replace(target)
        except FileNotFoundError as error:
            if target.exists():  # an earlier try of this commit came as far as that
                return
            raise FolderUnfit(
                f"a file that a task wrote for output '{self._output.name}' is not in "
                f"'{self._folder}' here",
                hint="the `warehouse` must be one folder for the driver and all executors",
            ) from error

    def remove(self, names: Sequence[str]) -> None:
        """Remove files that have names."""
        for name in names:
            (self._folder / name).unlink(missing_ok=True)
        self._sync_names(names)

    def _sync_names(self, names: Iterable[str]) -> None:
        parents = {self._folder / place for name in names for place in Path(name).parents}
        for place in sorted(parents, reverse=True):  # those that are new have names in others
            if place.is_dir():
                _sync(place)

    def begin(self, owner: Owner, staged: Mapping[str, str]) -> None:
        """Remove what tasks of other runs have left."""
        self._unlink(path for path in self._tries() if _numbers(path)[0] != owner.epoch)
        _sync(self._folder)
        _sync(self._folder.parent)

    def clear(self, owner: Owner, batch: int) -> None:
        """Remove what tries have left of a batch that is done, and of earlier ones."""
        self._unlink(path for path in self._tries() if _numbers(path)[1] <= batch)

    def newest(self, suffix: str, since: int) -> list[str]:
        """Return files that have names, the newest first."""
        folder = self._folder
        if not folder.is_dir():
            raise nothing_there(self._output, f"folder '{folder}'")
        seen = [
            (path.stat().st_mtime_ns, path.relative_to(folder))
            for path in folder.rglob(f"*.{suffix}")
        ]
        return [
            name.as_posix()
            for when, name in sorted(seen, reverse=True)
            if when >= since * 1_000_000 and OWN not in name.parts
        ]

    def open(self, name: str) -> BinaryIO:
        """Open a file for reading."""
        return (self._folder / name).open("rb")

    def _tries(self) -> list[Path]:
        return list((self._folder / TRIES).glob("*.tmp"))

    @staticmethod
    def _unlink(paths: Iterable[Path]) -> None:
        for path in paths:
            path.unlink(missing_ok=True)


def folder_of(output: Output) -> Path:
    """Return the folder of an output.

    Raises:
        FolderUnfit: No warehouse is configured.
    """
    warehouse = output.connection.get("warehouse")
    if not warehouse:
        raise FolderUnfit(f"there is no warehouse for the folder of output '{output.name}'")
    return Path(warehouse) / str(output.settings["folder"])


def _numbers(path: Path) -> tuple[int, int]:
    """Return the epoch and the batch of a file that has no name yet."""
    epoch, batch, _ = path.name.split("-", 2)
    return int(epoch), int(batch)


def _lock(handle: int) -> bool:
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def _reach_disk(file: BinaryIO) -> None:
    file.flush()
    os.fsync(file.fileno())


def _sync(folder: Path) -> None:
    """Let the names in a folder reach the disk."""
    handle = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
