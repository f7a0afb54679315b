"""Pages of a table, as the catalogue of their source has them, and how large the next one is."""

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

Key = tuple[str, ...]
"""The key of a row, each value as the text from which its database makes it again."""

FIRST_PAGE_ROWS = 20_000
"""Rows of the first page, before anything is known of the table."""
_LEAST, _MOST = 500, 400_000
_SECONDS, _BYTES = 1.5, 32 << 20
"""How long a page should take, and how large it should be."""
_GROWTH = 4


@dataclass(frozen=True, slots=True, kw_only=True)
class Page:
    """Rows with keys behind one key, up to another one."""

    first: int
    """The offset of its first row."""
    rows: int
    after: Key | None
    """None: it begins with the first row of the table."""
    until: Key | None
    """None: the table has no row behind `after`."""
    checksum: str
    """Of its rows."""
    read: int
    """When, in epoch milliseconds."""
    last: bool
    """No page follows."""

    @property
    def called(self) -> str:
        """The keys that it lies between."""
        after = () if self.after is None else (f"behind {shown(self.after)}",)
        until = () if self.until is None else (f"up to {shown(self.until)}",)
        return ", ".join((*after, *until)) or "of no row"

    @property
    def end(self) -> int:
        """The offset behind its last row."""
        return self.first + self.rows


@dataclass(frozen=True, slots=True, kw_only=True)
class Fetched:
    """A page as it comes from the database."""

    rows: Sequence[bytes]
    """Each a JSON object."""
    until: Key | None
    last: bool


class PageReader(Protocol):
    """Reads pages of one table; opens what it needs for each, and leaves nothing open."""

    @property
    def place(self) -> str:
        """Which table, for people."""
        ...

    def page(self, after: Key | None, size: int) -> Fetched:
        """Return about so many rows behind a key, in the order of their keys.

        Raises:
            SourceAway: The database does not answer.
            SourceUnfit: It refuses, or the table is not as it must be.
        """
        ...

    def reread(self, after: Key | None, until: Key) -> Sequence[bytes]:
        """Return the rows behind a key up to another one, as they are now.

        Raises:
            SourceAway: The database does not answer.
            SourceUnfit: It refuses, or the table is not as it must be.
        """
        ...


def shown(key: Key) -> str:
    """Return a key as people read it.

    >>> shown(("7",)), shown(("7", "x"))
    ('7', '(7, x)')
    """
    return key[0] if len(key) == 1 else f"({', '.join(key)})"


def next_size(size: int, seconds: float, count: int) -> int:
    """Return how many rows the next page should have.

    >>> next_size(20_000, 0.1, 1 << 20), next_size(20_000, 6.0, 1 << 20)
    (80000, 5000)
    >>> next_size(20_000, 0.1, 64 << 20), next_size(600, 100.0, 1)
    (10000, 500)

    Args:
        size: How many the last one was asked for.
        seconds: How long that took.
        count: The bytes of its rows.
    """
    share = min(_GROWTH, _SECONDS / max(seconds, 1e-3), _BYTES / max(count, 1))
    return min(_MOST, max(_LEAST, int(size * share)))


def checksum_of(rows: Sequence[bytes]) -> str:
    """Return what tells rows from others, or from the same ones in another order."""
    found = hashlib.blake2b(digest_size=16)
    for row in rows:
        found.update(len(row).to_bytes(8, "big"))
        found.update(row)
    return found.hexdigest()
