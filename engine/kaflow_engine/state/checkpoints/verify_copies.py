"""Verifies a state partition: rebuilds it from snapshots and change files, and compares."""

import shutil
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

from kaflow_engine.errors import StateError
from kaflow_engine.state.copies.copies import EMPTY, catch_up
from kaflow_engine.state.copies.rocks import RocksCopy
from kaflow_engine.state.copies.rocks_open import open_copy, wipe
from kaflow_engine.state.copies.snapshots import restore
from kaflow_engine.state.hints import FROM_BACKUP
from kaflow_engine.state.log.batch_log import BatchLog
from kaflow_engine.state.reader import StateRef
from kaflow_engine.state.storage.store import Damaged, Store

Level = Literal["damaged", "note"]

OLDER = "nothing need be done: an older snapshot is used, and the next one replaces this"

_AT_ONCE = 20_000


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """Something that is not as it should be."""

    level: Level
    """`note`: a run does not need it."""
    file: str
    """Name in the store."""
    what: str
    cure: str


@dataclass(slots=True)
class Walk:
    """One partition, from its oldest snapshot to the last batch."""

    name: str
    """State partition, `<step>-<p>`."""
    ref: StateRef
    log: BatchLog
    snapshots: Store
    scratch: Path
    """Where it is built."""
    copies: Path | None = None
    """Copies that runs use, if they may be looked at."""
    problems: list[Finding] = field(default_factory=list[Finding])
    built: int = 0
    """1 if the last batch was reached."""
    compared: int = 0
    """How often two ways led to the same."""

    def check(self, bases: Sequence[int], last: int) -> None:
        """Go from snapshot to snapshot, and to the last batch.

        Args:
            bases: Batches of snapshots of this generation, oldest first.
            last: The last batch that is done.
        """
        path = self.scratch / self.name
        found: RocksCopy | None = None
        try:
            for base in bases if EMPTY < last else ():
                fresh = self._restored(base)
                if fresh is None:
                    continue
                if found is not None and self._reaches(found, base):
                    self._compare(found, fresh, base)
                    wipe(fresh)
                    continue
                if found is not None:
                    found.close(settle=False)
                    wipe(path)
                fresh.rename(path)
                found = open_copy(path, self.ref)
            if found is None:
                found = self._empty(path)
            if self._reaches(found, last):
                self.built = 1
                self._compare_own(found, last)
        finally:
            if found is not None:
                found.close(settle=False)
            wipe(path)

    def _empty(self, path: Path) -> RocksCopy:
        found = open_copy(path, self.ref)
        found.advance(EMPTY, store=True)
        return found

    def _restored(self, base: int) -> Path | None:
        fresh = self.scratch / f"{self.name}.{base}"
        try:
            restore(self.snapshots, self.ref, base, self.name, fresh)
        except Damaged as error:
            wipe(fresh)
            self._add(_file_of(error, f"snapshots/{base}/{self.name}"), error.message, OLDER)
            return None
        return fresh

    def _reaches(self, copy: RocksCopy, upto: int) -> bool:
        try:
            catch_up(copy, self.name, self.ref, upto, self.log)
        except Damaged as error:
            self._add(_file_of(error, f"changes of {self.name}"), error.message, FROM_BACKUP)
            return False
        return True

    def _compare(self, walked: RocksCopy, fresh: Path, base: int) -> None:
        with open_copy(fresh, self.ref) as stored:
            if not differ(walked, stored):
                self.compared += 1
                return
        self._add(
            f"snapshots/{base}/{self.name}/manifest.json",
            "it is not what the snapshot before it and the change files lead to",
            f"remove the folder snapshots/{base}: then the older one is used",
        )

    def _compare_own(self, walked: RocksCopy, last: int) -> None:
        """Compare with the copy that runs use."""
        own = None if self.copies is None else self.copies / self.name
        if own is None or not own.exists():
            return
        fresh = self.scratch / f"{self.name}.own"
        try:
            shutil.copytree(own, fresh)
            with open_copy(fresh, self.ref) as copy:
                if copy.foreign or copy.applied is None or copy.applied > last:
                    return  # it is built again before it is read
                catch_up(copy, self.name, self.ref, last, self.log)
                if not differ(walked, copy):
                    self.compared += 1
                    return
                what = "it is not what snapshots and change files lead to"
        except Damaged as error:
            what = error.message
        except OSError as error:
            raise StateError(f"cannot copy '{own}': {error.strerror}") from error
        finally:
            wipe(fresh)
        cure = "remove this folder: it is built again from snapshot and change files"
        self._add(f"{own.parent.name}/{own.name}", what, cure)

    def _add(self, file: str, what: str, cure: str) -> None:
        self.problems.append(Finding(level="damaged", file=file, what=what, cure=cure))


def differ(one: RocksCopy, other: RocksCopy) -> bool:
    """Tell whether two copies have different entries."""
    return any(a != b for a, b in zip(_entries(one), _entries(other), strict=True))


def _entries(copy: RocksCopy) -> Iterator[tuple[list[bytes], list[bytes]]]:
    start = b""
    while True:
        found = copy.range(start, None, _AT_ONCE)
        yield found.keys, found.values
        if len(found.keys) < _AT_ONCE:
            return
        start = found.keys[-1] + b"\0"


def _file_of(error: Damaged, otherwise: str) -> str:
    """Return the file that an error names."""
    parts = error.message.split("'")
    return parts[1] if len(parts) > 2 and "/" in parts[1] else otherwise
