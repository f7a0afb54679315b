"""A file as a look finds it, and which paths a pattern names."""

import re
from collections.abc import Iterable
from dataclasses import dataclass
from typing import BinaryIO, Protocol

_PATTERN = re.compile(r"[*?\[]")
_PIECES = re.compile(r"\*\*/|\*\*|\*|\?|\[[^\]]+\]|[^*?\[]+|\[")
_SIGNS = {"**/": "(?:.*/)?", "**": ".*", "*": "[^/]*", "?": "[^/]"}
_HIDDEN = (".", "_")
"""What names begin with of files that are no data: those of writers on their way, and markers."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Seen:
    """A file as a look at its folder finds it."""

    path: str
    size: int
    changed: int
    """When it was written to last, in epoch nanoseconds."""


class Storage(Protocol):
    """Where files are; picklable."""

    def look(self, path: str) -> list[Seen]:
        """Return the files that a path names, by name; of a folder all that are in it and below.

        Raises:
            SourceUnfit: There is no such folder.
            SourceAway: It cannot be read now.
        """
        ...

    def state_of(self, path: str) -> Seen | None:
        """Return a file as it is now; None: there is none."""
        ...

    def open(self, path: str) -> BinaryIO:
        """Open a file for reading from any place.

        Raises:
            OSError: It cannot be read.
        """
        ...


def base_of(path: str) -> str:
    """Return the folder below which a pattern names files; a path that is none as it is.

    >>> base_of("/in/2026-*/*.json"), base_of("/in")
    ('/in', '/in')
    """
    found = _PATTERN.search(path)
    return path[: found.start()].rpartition("/")[0] if found else path


def named(path: str, below: Iterable[Seen]) -> list[Seen]:
    """Return those files below a folder that its path, or a pattern, names, by name.

    >>> some = [Seen(path=p, size=0, changed=0) for p in ("/in/a/b", "/in/_c", "/in/d")]
    >>> [file.path for file in named("/in", some)], [file.path for file in named("/in/*", some)]
    (['/in/a/b', '/in/d'], ['/in/d'])
    """
    base, pattern = base_of(path), None
    if base != path:
        signs = (_SIGNS.get(each) or _literal(each) for each in _PIECES.findall(path))
        pattern = re.compile("".join(signs), re.DOTALL)
    found = [
        file
        for file in below
        if not any(part.startswith(_HIDDEN) for part in file.path[len(base) :].split("/"))
        and (pattern is None or pattern.fullmatch(file.path))
    ]
    return sorted(found, key=lambda file: file.path)


def _literal(piece: str) -> str:
    if piece.startswith("[") and len(piece) > 1:
        inner = piece[1:-1].replace("\\", "\\\\")
        return f"[^{inner[1:]}]" if inner.startswith("!") else f"[{inner}]"
    return re.escape(piece)
