"""Folders of this host, or that hosts share."""

import os
from collections.abc import Iterator
from dataclasses import dataclass
from typing import BinaryIO

from kaflow_engine.connectors.files.source.seen import Seen, base_of, named
from kaflow_engine.errors import SourceAway, SourceUnfit


@dataclass(frozen=True, slots=True)
class Folders:
    """Files by their paths."""

    def look(self, path: str) -> list[Seen]:
        """Return the files that a path names, by name.

        Raises:
            SourceUnfit: There is no such folder.
            SourceAway: It cannot be read now.
        """
        base = base_of(path)
        if path == base and os.path.isfile(path):
            return [found] if (found := self.state_of(path)) else []
        if not os.path.isdir(base):
            hint = "create it, or fix `path` of the source"
            raise SourceUnfit(f"there is no folder '{base}'", hint=hint)
        try:
            return named(path, self._below(base))
        except OSError as error:
            raise SourceAway(f"'{base}' cannot be read: {error.strerror or error}") from error

    def state_of(self, path: str) -> Seen | None:
        """Return a file as it is now; None: there is none."""
        try:
            found = os.stat(path)
        except (FileNotFoundError, NotADirectoryError):
            return None
        return Seen(path=path, size=found.st_size, changed=found.st_mtime_ns)

    def open(self, path: str) -> BinaryIO:
        """Open a file for reading."""
        return open(path, "rb")

    def _below(self, folder: str) -> Iterator[Seen]:
        for above, _, files in os.walk(folder, onerror=_raise):
            for file in files:
                if (found := self.state_of(os.path.join(above, file))) is not None:
                    yield found


def _raise(error: OSError) -> None:
    raise error
