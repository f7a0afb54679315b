"""The rows of both sides of a join of tables in one task, as far as a batch touches them."""

import struct
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

from kaflow_engine.flow.tables import TableJoin
from kaflow_engine.operators.keyed_state import StepState
from kaflow_engine.state.keys import entry_key

LEFT, RIGHT = 0, 1
"""Side bytes of rows that may meet; those of rows without a join key are greater by ALONE."""

ALONE = 2

_TS = struct.Struct("<q")


class Place(NamedTuple):
    """Where rows meet: under a join key; or where a row without one is alone."""

    key: bytes
    """The join key, or the identity of the row, behind the shard byte."""
    of: int | None
    """The side of a row that is alone; None: it is a join key."""

    @property
    def alone(self) -> bool:
        """Whether there is only one row, which meets nothing."""
        return self.of is not None


@dataclass(frozen=True, slots=True)
class SideRow:
    """A row of one side."""

    packed: str
    ts: int
    """Greatest event time of what made it."""


@dataclass(slots=True)
class Meeting:
    """The rows of both sides in one place, by identity."""

    rows: tuple[dict[bytes, SideRow], dict[bytes, SideRow]] = field(
        default_factory=lambda: ({}, {})
    )
    others: list[bool] = field(default_factory=lambda: [False, False])
    """Whether a side has rows that are not read, because they stay what they are."""

    def has(self, side: int) -> bool:
        """Tell whether a side has any row."""
        return self.others[side] or bool(self.rows[side])


Touched = Mapping[Place, tuple[set[bytes], set[bytes]]]
"""The identities of the rows of each side that a batch changes."""


def side_row(value: bytes) -> SideRow:
    """Decode a row of a side."""
    return SideRow(value[_TS.size :].decode(), _TS.unpack_from(value)[0])


def read_meetings(join: TableJoin, state: StepState, touched: Touched) -> dict[Place, Meeting]:
    """Return what there is in places before a batch.

    Where one side changes, all rows of the other are read; of its own those that change, and,
    where it matters to the other side, whether there are more.
    """
    found = {place: Meeting() for place in touched}
    for side in (LEFT, RIGHT):
        met = [place for place, some in touched.items() if some[1 - side] and not place.alone]
        index, suffixes, values = state.entries(side, [place.key for place in met])
        for i, suffix, value in zip(index, suffixes, values, strict=True):
            found[met[i]].rows[side][suffix] = side_row(value)
        rest = [p for p, some in touched.items() if some[side] and (p.alone or not some[1 - side])]
        _read_own(state, side, {place: touched[place][side] for place in rest}, found)
        if join.sides[1 - side].preserved:
            _look_for_others(state, side, {p: touched[p][side] for p in rest if not p.alone}, found)
    return found


def write_row(
    state: StepState, place: Place, side: int, identity: bytes, row: SideRow | None
) -> None:
    """Keep a row of a side; None: no longer."""
    entry = _entry(place, side, identity)
    if row is None:
        state.delete(entry)
    else:
        state.put(entry, _TS.pack(row.ts) + row.packed.encode())


def _read_own(
    state: StepState,
    side: int,
    wanted: Mapping[Place, Iterable[bytes]],
    found: dict[Place, Meeting],
) -> None:
    asked = [(place, identity) for place, some in wanted.items() for identity in sorted(some)]
    values = state.values([_entry(place, side, identity) for place, identity in asked])
    for (place, identity), value in zip(asked, values, strict=True):
        if value is not None:
            found[place].rows[side][identity] = side_row(value)


def _look_for_others(
    state: StepState,
    side: int,
    touched: Mapping[Place, set[bytes]],
    found: dict[Place, Meeting],
) -> None:
    keys = [place.key for place in touched]
    most = [len(some) + 1 for some in touched.values()]
    for (place, some), suffixes in zip(touched.items(), state.few(side, keys, most), strict=True):
        found[place].others[side] = any(suffix not in some for suffix in suffixes)


def _entry(place: Place, side: int, identity: bytes) -> bytes:
    return entry_key(place.key, side + ALONE * place.alone, identity)
