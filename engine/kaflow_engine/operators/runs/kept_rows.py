"""The rows of one unfinished run: as they were before the batch, with what it changed since."""

import json
import struct
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import pyarrow as pa

from kaflow_engine.operators.keyed_state import StepState
from kaflow_engine.operators.rows.schemas import ORIGIN
from kaflow_engine.state.keys import entry_key

ROW, HEAD = 0, 1
"""Side bytes: rows of unfinished runs, and of each writer what there is of its run."""

_HEAD = struct.Struct(">qQI")
_NUMBER = struct.Struct(">Q")
NEVER = 1 << 60
"""The time of a run that waits until it is full: only the end of a bounded run is behind it."""


@dataclass(frozen=True, slots=True)
class KeptRow:
    """A row that waits for others."""

    payload: str
    """Its columns, packed."""
    raw: str | None
    """The original bytes of its record, as JSON text."""
    ts: int
    origin: tuple[int, ...]
    """Where its driving record stands: ORIGIN."""
    members: tuple[int, ...]
    branch: int = 0
    """Of the union from which it came."""

    def encoded(self) -> bytes:
        """Encode it for the state."""
        payload = [self.payload, self.branch] if self.branch else self.payload
        return json.dumps(
            [payload, self.raw, self.ts, *self.origin, *self.members], separators=(",", ":")
        ).encode()


def read_row(value: bytes) -> KeptRow:
    """Decode what `encoded` wrote."""
    payload, raw, ts, *numbers = json.loads(value)
    text: str = payload if isinstance(payload, str) else payload[0]
    branch: int = 0 if isinstance(payload, str) else payload[1]
    return KeptRow(text, raw, ts, tuple(numbers[:4]), tuple(numbers[4:]), branch)


@dataclass(frozen=True, slots=True)
class Arrived:
    """Rows that came in one batch, those of each writer together and in their order."""

    rows: pa.Table
    """Schema EXCHANGE, each column in one piece."""
    branches: Mapping[int, int]
    """The place of each branch of a union by its `side`."""

    def kept(self, start: int, stop: int) -> list[KeptRow]:
        """Return some of them one by one."""
        rows = self.rows.slice(start, stop - start)
        origins = zip(*(rows[name].to_pylist() for name in ORIGIN), strict=True)
        columns = (rows[name].to_pylist() for name in ("payload", "raw", "ts", "members", "side"))
        return [
            KeptRow(payload, raw, ts, tuple(origin), tuple(members or ()), self.branches[side])
            for (payload, raw, ts, members, side), origin in zip(
                zip(*columns, strict=True), origins, strict=True
            )
        ]


@dataclass(frozen=True, slots=True, kw_only=True)
class RunRows:
    """The rows of a run: those that waited, and those of this batch, which stay as they came."""

    waited: Sequence[KeptRow]
    arrived: Arrived | None = None
    start: int = 0
    stop: int = 0
    """Which of those that arrived."""

    def __len__(self) -> int:
        return len(self.waited) + self.stop - self.start

    def at(self, place: int) -> KeptRow:
        """Return one of them."""
        if place < len(self.waited):
            return self.waited[place]
        assert self.arrived is not None
        at = self.start + place - len(self.waited)
        (row,) = self.arrived.kept(at, at + 1)
        return row

    @property
    def payloads(self) -> pa.Array:
        """Their columns, packed; text."""
        waited = pa.array([row.payload for row in self.waited], pa.string())
        if self.arrived is None:
            return waited
        column = self.arrived.rows["payload"].chunk(0)
        arrived = column.slice(self.start, self.stop - self.start)
        return arrived if not self.waited else pa.concat_arrays([waited, arrived])

    @property
    def newest(self) -> int:
        """The greatest of their times."""
        times = [row.ts for row in self.waited]
        if self.arrived is not None:
            column = self.arrived.rows["ts"].chunk(0)
            times.append(int(column.to_numpy()[self.start : self.stop].max()))
        return max(times)


@dataclass(frozen=True, slots=True)
class Head:
    """What there is of an unfinished run."""

    due: int
    """Batch time at which it is made of what there is, epoch milliseconds."""
    first: int
    """The number of its first row; a writer numbers its rows."""
    count: int

    def encoded(self) -> bytes:
        """Encode it for the state."""
        return _HEAD.pack(self.due, self.first, self.count)


def read_head(value: bytes) -> Head:
    """Decode what `encoded` wrote."""
    return Head(*_HEAD.unpack(value))


@dataclass(slots=True)
class Writer:
    """What waits under one key."""

    key: bytes
    """Behind its shard byte."""
    stored: Head | None
    """As it was before the batch."""
    due: int = NEVER
    """Of the run that is not finished now."""
    added: list[KeptRow] = field(default_factory=list[KeptRow])
    """Its rows that came in this batch."""
    taken: bool = False
    """The rows that were stored are in a run."""

    @property
    def count(self) -> int:
        """How many rows wait."""
        stored = self.stored.count if self.stored is not None and not self.taken else 0
        return stored + len(self.added)

    def take(self, state: StepState) -> list[KeptRow]:
        """Return the rows that wait, which make a run."""
        rows: list[KeptRow] = []
        if self.stored is not None and not self.taken:
            _, names, values = state.entries(ROW, [self.key])
            rows = [read_row(value) for _, value in sorted(zip(names, values, strict=True))]
            self.taken = True
        rows, self.added, self.due = [*rows, *self.added], [], NEVER
        return rows

    def write(self, state: StepState) -> None:
        """Hand what changed to the state."""
        head = entry_key(self.key, HEAD)
        stored, next_one = self.stored, 0
        if stored is not None:
            next_one = stored.first + stored.count
            if self.taken:
                self._forget(state, head, stored)
        if not self.added:
            return
        for number, row in enumerate(self.added, next_one):
            state.put(entry_key(self.key, ROW, _NUMBER.pack(number)), row.encoded())
        kept = stored is not None and not self.taken
        first = stored.first if stored is not None and kept else next_one
        now = Head(self.due, first, next_one + len(self.added) - first)
        state.put(head, now.encoded(), None if kept else self.due)

    def _forget(self, state: StepState, head: bytes, stored: Head) -> None:
        for number in range(stored.first, stored.first + stored.count):
            state.delete(entry_key(self.key, ROW, _NUMBER.pack(number)))
        state.forget([(stored.due, head)])


class Writers:
    """All writers of one task that a batch touches."""

    def __init__(self, state: StepState) -> None:
        self.state = state
        self._found: dict[bytes, Writer] = {}

    def of(self, keys: Sequence[bytes]) -> list[Writer]:
        """Return the writers of keys."""
        wanted = sorted({key for key in keys if key not in self._found})
        values = self.state.values([entry_key(key, HEAD) for key in wanted])
        for key, value in zip(wanted, values, strict=True):
            stored = None if value is None else read_head(value)
            due = NEVER if stored is None else stored.due
            self._found[key] = Writer(key, stored, due)
        return [self._found[key] for key in keys]

    @property
    def touched(self) -> list[Writer]:
        """Those of which anything was asked, by their keys."""
        return [self._found[key] for key in sorted(self._found)]

    def write(self) -> int | None:
        """Hand what changed to the task; returns the earliest time at which a run falls due."""
        for writer in self.touched:
            writer.write(self.state)
        due = self.state.write()
        return None if due is None or due >= NEVER else due
