"""`StateReader`: keyed state as operators see it."""

from bisect import bisect_left
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

_MANY = 50
"""Entries of a shard from which on it may be faster to read all between them."""


@dataclass(frozen=True, slots=True)
class StateRef:
    """Which state something belongs to."""

    state_id: str
    """Minted when the state is created."""
    generation: int
    """Raised when its partitions change, or when it is taken back without a replay."""


@dataclass(frozen=True, slots=True)
class Entries:
    """Entries of one key range, in ascending order of keys."""

    keys: list[bytes]
    values: list[bytes]


@dataclass(frozen=True, slots=True)
class Scanned:
    """Entries of several prefixes: prefixes in the order asked for, keys ascending in each."""

    index: list[int]
    """Per entry, the position of its prefix in the request."""
    keys: list[bytes]
    values: list[bytes]


@dataclass(frozen=True, slots=True)
class CopySize:
    """How big a copy is, as RocksDB estimates it."""

    entries: int
    bytes: int


class StateReader(Protocol):
    """One state partition as it was after the batch before."""

    def get(self, keys: Sequence[bytes]) -> list[bytes | None]:
        """Return the value of each key, None where there is none; any order, repeats allowed."""
        ...

    def scan(self, prefixes: Sequence[bytes]) -> Scanned:
        """Return all entries whose key starts with one of the prefixes."""
        ...

    def range(self, start: bytes, stop: bytes | None, most: int | None = None) -> Entries:
        """Return the first `most` entries with `start` <= key < `stop`; None: no bound."""
        ...


def successor(prefix: bytes) -> bytes | None:
    r"""Return the least key greater than all keys with this prefix; None if there is no such key.

    >>> successor(b"a"), successor(b"a\xff"), successor(b"\xff")
    (b'b', b'b', None)
    """
    kept = prefix.rstrip(b"\xff")
    return kept[:-1] + bytes((kept[-1] + 1,)) if kept else None


def read_through(state: StateReader, names: Sequence[bytes]) -> list[bytes | None]:
    """Return the values of entries, in their order, by reading what lies between them.

    Where others lie between them, each is looked up.
    """
    found: list[bytes | None] = []
    at = 0
    while at < len(names):
        stop = bisect_left(names, bytes((names[at][0] + 1,)), at) if names[at][0] < 255 else None
        some = names[at:stop]
        most = 2 * len(some) if len(some) >= _MANY else 0
        near = state.range(some[0], some[-1] + b"\0", most) if most else None
        if near is None or len(near.keys) == most:
            found += state.get(some)
        elif near.keys == some:
            found += near.values
        else:
            found += map(dict(zip(near.keys, near.values, strict=True)).get, some)
        at += len(some)
    return found
