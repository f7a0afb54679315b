"""Where the files of an output lie: a folder of the warehouse, or one of a bucket.

A file is staged first, whole, where no reader meets it, and published under its name later.
"""

from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import BinaryIO, Protocol

from kaflow_engine.connectors.contract import Output, Owner

Write = Callable[[BinaryIO], None]

OWN = "_kaflow"
"""The folder in that of an output which holds the ledger, and files that are not whole."""
LEDGER = f"{OWN}/ledger"  # not .json: whoever reads **/*.json would take it for rows


class LedgerChanged(Exception):
    """The ledger that was to be replaced is not the one that was read."""


@dataclass(frozen=True, slots=True)
class NewFile:
    """A file that is whole, and waits for its name."""

    staged: str
    """What `Place.stage` returned."""
    name: str
    """What it will be called, below the place."""
    rows: int


class Place(Protocol):
    """Names are below the place, with `/`."""

    def require_fit(self) -> None:
        """Refuse a place that cannot be written; nothing is changed by looking.

        Raises:
            FolderUnfit: It cannot.
        """
        ...

    def exclusive(self) -> AbstractContextManager[None]:
        """Keep other processes from the ledger, where only that keeps it from changing."""
        ...

    def read_ledger(self) -> tuple[bytes, str] | None:
        """Return the ledger and the tag of this version of it; None: there is none."""
        ...

    def write_ledger(self, data: bytes, replacing: str | None) -> str:
        """Replace the ledger of a tag, at once and for good; return the new tag.

        Raises:
            LedgerChanged: It is another one.
        """
        ...

    def stage(self, name: str, epoch: int, batch: int, write: Write) -> str:
        """Write a file that has no name yet; return what it is known by until then."""
        ...

    def publish(self, files: Sequence[NewFile]) -> None:
        """Give files their names, each at once; one that an earlier try has named stays.

        Raises:
            FolderUnfit: One is not there.
        """
        ...

    def remove(self, names: Sequence[str]) -> None:
        """Remove files that have names; nothing happens where there is none."""
        ...

    def begin(self, owner: Owner, staged: Mapping[str, str]) -> None:
        """Remove what earlier runs have staged, so that they can publish it no more.

        Args:
            owner: The run that begins.
            staged: Name → what it is known by, of the last batch that the ledger knows.
        """
        ...

    def clear(self, owner: Owner, batch: int) -> None:
        """Remove what tries of a batch that is done, and of earlier ones, have left staged."""
        ...

    def newest(self, suffix: str, since: int) -> list[str]:
        """Return names with a suffix written since then (epoch ms), the newest first.

        Raises:
            SinkUnfit: There is no such place.
        """
        ...

    def open(self, name: str) -> BinaryIO:
        """Open a file for reading."""
        ...


def place_of(output: Output) -> Place:
    """Return where the files of an output lie.

    Raises:
        FolderUnfit: No warehouse is configured.
    """
    if "://" in str(output.settings["folder"]):
        from kaflow_engine.connectors.files.bucket import FolderOfBucket  # few outputs need it

        return FolderOfBucket(output)
    from kaflow_engine.connectors.files.folder import FolderOfWarehouse

    return FolderOfWarehouse(output)
