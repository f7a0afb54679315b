"""`StateReader`: keyed state as operators see it."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Protocol

import pyarrow as pa
import pyarrow.compute as pc

from kaflow_engine.state.binary_columns import ascend, put_back


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

    def read(self, keys: pa.BinaryArray) -> pa.BinaryArray:
        """Return the value of each key, null where there is none; each key once, in any order."""
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


def read_in_order(
    get: Callable[[Sequence[bytes]], Sequence[bytes | None]], keys: pa.BinaryArray
) -> pa.BinaryArray:
    """Return the value of each key from what `get` finds under them in ascending order."""
    if ascend(keys):
        return pa.array(get(_objects(keys)), pa.binary())
    order = pc.sort_indices(keys)
    found = get(_objects(keys.take(order)))
    return put_back(pa.array(found, pa.binary()), order.to_numpy())


def _objects(keys: pa.BinaryArray) -> list[bytes]:
    return keys.to_numpy(zero_copy_only=False).tolist()
