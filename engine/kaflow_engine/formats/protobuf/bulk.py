"""Read flat Protobuf messages in bulk: a cursor for each message, all of them a field at a time.

Only fields of proto3 that are one scalar, an enum or a time are read here. A message that is not
as libraries write it (broken, a field twice) is marked, and left to Protobuf's own library.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
from google.protobuf.descriptor import Descriptor, FieldDescriptor

from kaflow_engine.formats.asked import Bools, Longs
from kaflow_engine.formats.protobuf.types import Choice, Field, Instant, Plain, Shape
from kaflow_engine.formats.types import arrow_type

Bytes = npt.NDArray[np.uint8]
Unsigned = npt.NDArray[np.uint64]

_VARINT, _FIXED64, _LENGTH, _FIXED32 = 0, 1, 2, 5
_ZIGZAG = (FieldDescriptor.TYPE_SINT32, FieldDescriptor.TYPE_SINT64)
_WIRES = {
    FieldDescriptor.TYPE_DOUBLE: _FIXED64,
    FieldDescriptor.TYPE_FIXED64: _FIXED64,
    FieldDescriptor.TYPE_SFIXED64: _FIXED64,
    FieldDescriptor.TYPE_FLOAT: _FIXED32,
    FieldDescriptor.TYPE_FIXED32: _FIXED32,
    FieldDescriptor.TYPE_SFIXED32: _FIXED32,
    FieldDescriptor.TYPE_STRING: _LENGTH,
    FieldDescriptor.TYPE_BYTES: _LENGTH,
    FieldDescriptor.TYPE_MESSAGE: _LENGTH,
}
"""How a type is written where it is not a varint."""
_GREATEST = 2**29 - 1
_MICROS = 10**6
_LAST = 2**63 // _MICROS - 1


class NotFlat(Exception):
    """Messages that are not read in bulk."""


@dataclass(frozen=True, slots=True)
class Wanted:
    """A field that is read."""

    field: Field
    number: int
    wire: int
    zigzag: bool


def wanted_of(descriptor: Descriptor, fields: Sequence[Field]) -> tuple[Wanted, ...] | None:
    """Return how fields are read in bulk; None: they are not."""
    if any(f.has_default_value or f.is_required for f in descriptor.fields):
        return None
    found: list[Wanted] = []
    for field in fields:
        about = descriptor.fields_by_name[field.name]
        flat = isinstance(field.kind, Plain | Choice | Instant)
        choice = about.containing_oneof is not None and len(about.containing_oneof.fields) > 1
        closed = about.enum_type is not None and about.enum_type.is_closed
        one = field.shape in (Shape.ALWAYS, Shape.MAYBE)
        if not flat or not one or choice or closed or about.type == FieldDescriptor.TYPE_GROUP:
            return None
        wire = _WIRES.get(about.type, _VARINT)
        found.append(Wanted(field, about.number, wire, about.type in _ZIGZAG))
    return tuple(found)


@dataclass(slots=True)
class _Slot:
    """What was written of a field: a number, or where its bytes begin and end."""

    number: Unsigned
    end: Longs
    there: Bools

    @staticmethod
    def of(count: int) -> "_Slot":
        """Return that of as many messages in which it was not written."""
        numbers, ends = np.zeros(count, np.uint64), np.zeros(count, np.int64)
        return _Slot(numbers, ends, np.zeros(count, np.bool_))


class FlatReader:
    """Reads messages that lie in one buffer; `ok` says which of them could be read."""

    def __init__(self, data: Bytes, start: Longs, end: Longs) -> None:
        self._data = np.concatenate([data, np.zeros(16, np.uint8)])  # the last may be looked beyond
        self._start = start
        self._end = end
        self.ok: Bools = np.ones(len(start), np.bool_)

    def read(self, wanted: Sequence[Wanted]) -> list[pa.Array]:
        """Return the values of fields, one for each message; those that are not `ok` mean nothing.

        Raises:
            NotFlat: Some text is not UTF-8.
        """
        slots = self._slots({each.number: each.wire for each in wanted}, self._start, self._end)
        return [self._array(each, slots[each.number]) for each in wanted]

    def _slots(self, wires: dict[int, int], start: Longs, end: Longs) -> dict[int, _Slot]:
        """Find fields in the messages between two places, by their numbers."""
        slots = {number: _Slot.of(len(start)) for number in wires}
        at = start.copy()
        rows = np.flatnonzero(self.ok & (at < end))
        while len(rows):
            tags, after = self._varint(at[rows], end[rows], rows)
            for tag in np.unique(tags).tolist():
                here = tags == tag
                of, begin = rows[here], after[here]
                number, wire = tag >> 3, tag & 7
                if not 0 < number <= _GREATEST:
                    self.ok[of] = False
                value, begin, stop = self._extent(wire, begin, end[of], of)
                slot = slots.get(number)
                if slot is not None and wires[number] == wire:
                    if wire == _LENGTH:
                        value = begin.astype(np.uint64)
                    slot.number[of], slot.end[of] = value, stop
                    self.ok[of[slot.there[of]]] = False  # written twice: parts may belong together
                    slot.there[of] = True
                elif slot is not None:
                    self.ok[of] = False
                at[of] = stop
            rows = rows[self.ok[rows] & (at[rows] < end[rows])]
        return slots

    def _extent(
        self, wire: int, at: Longs, end: Longs, rows: Longs
    ) -> tuple[Unsigned, Longs, Longs]:
        """Return numbers, and where their bytes, or those of texts, begin and end."""
        match wire:
            case 0:
                value, stop = self._varint(at, end, rows)
            case 1:
                value, stop = self._fixed(at, "<u8"), at + 8
            case 5:
                value, stop = self._fixed(at, "<u4"), at + 4
            case 2:
                value, at = self._varint(at, end, rows)
                stop = at + np.minimum(value, np.uint64(2**31)).astype(np.int64)
            case _:
                self.ok[rows] = False
                return np.zeros(len(at), np.uint64), at, end
        self.ok[rows[stop > end]] = False
        return value, at, np.minimum(stop, end)

    def _varint(self, at: Longs, end: Longs, rows: Longs) -> tuple[Unsigned, Longs]:
        value = np.zeros(len(at), np.uint64)
        at = at.copy()
        more = np.arange(len(at))
        for shift in range(0, 70, 7):
            byte = self._data[at[more]].astype(np.uint64)
            value[more] |= (byte & np.uint64(0x7F)) << np.uint64(shift)
            at[more] += 1
            more = more[(byte >= 0x80) & (at[more] < end[more])]
            if not len(more):
                break
        self.ok[rows[at > end]] = False
        self.ok[rows[more]] = False
        short = self._data[np.maximum(at - 1, 0)] >= 0x80
        self.ok[rows[short]] = False
        return value, np.minimum(at, end)

    def _fixed(self, at: Longs, kind: str) -> Unsigned:
        size = np.dtype(kind).itemsize
        bytes_ = self._data[np.minimum(at, len(self._data) - size)[:, None] + np.arange(size)]
        return np.ascontiguousarray(bytes_).view(kind).ravel().astype(np.uint64)

    def _array(self, wanted: Wanted, slot: _Slot) -> pa.Array:
        there = slot.there & self.ok
        missing = ~there if wanted.field.shape is Shape.MAYBE else None
        match wanted.field.kind:
            case Instant():
                return self._instants(slot, there)
            case Choice(names=names):
                numbers = slot.number.astype(np.uint32).view(np.int32)
                texts = {int(each): names.get(int(each), str(each)) for each in np.unique(numbers)}
                named = [texts[each] for each in numbers.tolist()]
                return pa.array(named, pa.string(), mask=missing)
            case Plain(duck=duck):
                if wanted.wire == _LENGTH:
                    return self._texts(slot, there, missing, duck)
                return pa.array(_numbers(slot.number, wanted, duck), arrow_type(duck), mask=missing)
            case _:
                raise NotFlat

    def _instants(self, slot: _Slot, there: Bools) -> pa.Array:
        start = np.where(there, slot.number.astype(np.int64), 0)
        end = np.where(there, slot.end, 0)
        inner = self._slots({1: _VARINT, 2: _VARINT}, start, end)
        seconds, nanos = inner[1].number.view(np.int64), inner[2].number.view(np.int64)
        self.ok &= (np.abs(seconds) <= _LAST) | ~there
        self.ok &= (np.abs(nanos) < 2**31) | ~there
        micros = np.where(self.ok, seconds * _MICROS + nanos // 1000, 0)
        return pa.array(micros, pa.timestamp("us"), mask=~there)

    def _texts(self, slot: _Slot, there: Bools, missing: Bools | None, duck: str) -> pa.Array:
        start = slot.number.astype(np.int64)
        length = np.where(there, slot.end - start, 0)
        offsets: Longs = np.concatenate([np.zeros(1, np.int64), np.cumsum(length)])
        places = np.repeat(start - offsets[:-1], length) + np.arange(int(offsets[-1]))
        data = pa.py_buffer(self._data[places].tobytes())
        buffers = [None, pa.py_buffer(offsets.astype(np.int32).tobytes()), data]
        found = pa.Array.from_buffers(pa.binary(), len(start), buffers)
        if missing is not None:
            found = pc.if_else(pa.array(missing), None, found)
        try:
            return found.cast(arrow_type(duck))
        except pa.ArrowInvalid:
            raise NotFlat from None


def _numbers(found: Unsigned, wanted: Wanted, duck: str) -> npt.NDArray[np.generic]:
    match duck:
        case "DOUBLE":
            return found.view(np.float64)
        case "FLOAT":
            return found.astype(np.uint32).view(np.float32)
        case "BOOLEAN":
            return found != 0
        case "UBIGINT":
            return found
        case "UINTEGER":
            return found.astype(np.uint32)
        case _:
            pass
    if wanted.zigzag:
        found = found if duck == "BIGINT" else found & np.uint64(0xFFFFFFFF)
        found = (found >> np.uint64(1)) ^ (np.uint64(0) - (found & np.uint64(1)))
    whole = found.view(np.int64)
    return whole if duck == "BIGINT" else found.astype(np.uint32).view(np.int32)
