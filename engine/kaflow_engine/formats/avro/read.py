"""Decode many Avro records at once: a field of all records, then the next field.

Every record has a cursor into one buffer; numpy moves them together. A record whose bytes do not
fit the schema, or do not end where the record ends, is marked as not ok and disturbs no other. What
is wrong with it is for a slower reader to say.
"""

import decimal
from collections.abc import Mapping
from typing import Any, assert_never

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from kaflow_engine.formats.avro.types import (
    Array,
    Avro,
    Enum,
    Field,
    Fixed,
    Logical,
    MapOf,
    Primitive,
    Record,
    Recursive,
    Union,
    nullable,
)
from kaflow_engine.formats.avro.wide import is_wide_number, whole_numbers

Longs = npt.NDArray[np.int64]
Bools = npt.NDArray[np.bool_]

_DAY = 86_400_000_000
_MILLIS = 2**63 // 1000
_DIGITS = decimal.Context(prec=60)
_PAD = 32
_MOST_ITEMS = 4096
"""Items of one array that are read in bulk; a record with more goes to the slower reader."""


class BulkReader:
    """Reads the fields of records that stand one behind the other in a buffer."""

    def __init__(self, data: pa.Buffer | None, start: Longs, end: Longs) -> None:
        """Take the buffer, and where in it each record starts and ends (ascending)."""
        raw = (
            np.frombuffer(memoryview(data), np.uint8) if data is not None else np.empty(0, np.uint8)
        )
        self._bytes = np.concatenate([raw, np.zeros(_PAD, np.uint8)])
        self._buffer = pa.py_buffer(self._bytes)
        self._last = len(raw)
        self._at = start.copy()
        self._start = start
        self._end = end
        self.ok: Bools = np.ones(len(start), np.bool_)

    def read(self, record: Record, wanted: Mapping[str, Avro]) -> dict[str, pa.Array]:
        """Return the wanted fields, one value per record, each as the type that is asked for.

        Values of records that are not `ok` afterwards mean nothing.
        """
        rows = np.arange(len(self._at))
        found: dict[str, pa.Array] = {}
        for field in record.fields:
            if field.name not in wanted:
                self._read(field.type, rows)
                continue
            found[field.name] = self._read(wanted[field.name], rows)
        self.ok &= self._at == self._end
        return found

    def _read(self, kind: Avro, rows: Longs) -> pa.Array:
        match kind:
            case Primitive():
                return self._primitive(kind, rows)
            case Fixed(size=size, logical=logical):
                start, sizes = self._within(rows, np.full(len(rows), size, np.int64))
                return self._bytes_of(start, sizes, logical, rows)
            case Enum(symbols=symbols):
                index = self._longs(rows)
                index = self._valid(rows, index, (index >= 0) & (index < len(symbols)))
                return pa.array(symbols, pa.string()).take(pa.array(index))
            case Array(items=items):
                values, _, offsets = self._items(items, rows)
                return pa.ListArray.from_arrays(offsets, values)
            case MapOf(values=of):
                return self._map(of, rows)
            case Record(fields=fields):
                children = [self._read(field.type, rows) for field in fields]
                return pa.StructArray.from_arrays(children, [field.name for field in fields])
            case Union():
                return self._optional(kind, rows)
            case Recursive(name=name):
                raise NotImplementedError(name)
            case _:
                assert_never(kind)

    def _optional(self, kind: Union, rows: Longs) -> pa.Array:
        found = nullable(kind)
        if found is None:
            raise NotImplementedError(kind)
        absent, other = found
        branch = self._longs(rows)
        present = branch == 1 - absent
        self._fail(rows[~present & (branch != absent)])
        if present.all():
            return self._read(other, rows)
        values = self._read(other, rows[present])
        return values.take(pa.array(np.cumsum(present) - 1, mask=~present))

    def _primitive(self, kind: Primitive, rows: Longs) -> pa.Array:
        match kind.name:
            case "null":
                return pa.nulls(len(rows), pa.string())
            case "boolean":
                byte = self._fixed(rows, "<u1")
                self._fail(rows[byte > 1])
                return pa.array(byte == 1)
            case "float" | "double":
                return pa.array(self._fixed(rows, "<f4" if kind.name == "float" else "<f8"))
            case "int":
                value = self._longs(rows)
                value = self._valid(rows, value, value == value.astype(np.int32))
                return self._integer(value, kind.logical, rows, pa.int32())
            case "long":
                return self._integer(self._longs(rows), kind.logical, rows, pa.int64())
            case _:
                start, size = self._within(rows, self._longs(rows))
                if kind.name == "bytes":
                    return self._bytes_of(start, size, kind.logical, rows)
                return self._text(start, size, rows)

    def _integer(
        self, value: Longs, logical: Logical | None, rows: Longs, plain: pa.DataType
    ) -> pa.Array:
        match logical.name if logical else "", plain == pa.int64():
            case ("date", False):
                return pa.array(value.astype(np.int32)).cast(pa.date32())
            case ("time-millis", False):
                return self._time(value * 1000, rows)
            case ("time-micros", True):
                return self._time(value, rows)
            case ("timestamp-millis" | "local-timestamp-millis", True):
                value = self._valid(rows, value, (value > -_MILLIS) & (value < _MILLIS))
                return pa.array(value * 1000).cast(pa.timestamp("us"))
            case ("timestamp-micros" | "local-timestamp-micros", True):
                return pa.array(value).cast(pa.timestamp("us"))
            case ("timestamp-nanos" | "local-timestamp-nanos", True):
                return pa.array(value).cast(pa.timestamp("ns"))
            case _:
                return pa.array(value).cast(plain)

    def _time(self, micros: Longs, rows: Longs) -> pa.Array:
        micros = self._valid(rows, micros, (micros >= 0) & (micros < _DAY))
        return pa.array(micros).cast(pa.time64("us"))

    def _bytes_of(
        self, start: Longs, size: Longs, logical: Logical | None, rows: Longs
    ) -> pa.Array:
        if is_wide_number(logical):
            numbers, fits = whole_numbers(self._slices(start, size), logical)
            self._fail(rows[~fits])
            return numbers
        digits = logical.precision if logical and logical.name == "decimal" else 0
        if logical is None or not 0 < digits <= 38:
            return self._slices(start, size)
        size = self._valid(rows, size, size <= 16)
        column = np.arange(16)
        inside = column >= (16 - size)[:, None]
        byte = self._bytes[np.where(inside, start[:, None] + column - (16 - size)[:, None], 0)]
        negative = (size > 0) & (self._bytes[start] >= 0x80)
        byte = np.where(inside, byte, np.where(negative, 0xFF, 0)[:, None]).astype(np.uint8)
        little = pa.py_buffer(np.ascontiguousarray(byte[:, ::-1]))
        wide = pa.Array.from_buffers(pa.decimal128(38, logical.scale), len(rows), [None, little])
        most = pa.scalar(decimal.Decimal(10**digits - 1).scaleb(-logical.scale, _DIGITS), wide.type)
        fits = np.asarray(pc.less_equal(pc.abs(wide), most))
        self._fail(rows[~fits])
        zero = pa.scalar(decimal.Decimal(0), wide.type)
        fitting = wide if fits.all() else pc.if_else(pa.array(fits), wide, zero)
        return fitting.cast(pa.decimal128(digits, logical.scale))

    def _text(self, start: Longs, size: Longs, rows: Longs) -> pa.Array:
        found = self._slices(start, size)
        try:
            return found.cast(pa.string())
        except pa.ArrowInvalid:
            valid = np.array([_is_text(value) for value in found.to_pylist()], np.bool_)
            self._fail(rows[~valid])
            return self._slices(start, np.where(valid, size, 0)).cast(pa.string())

    def _slices(self, start: Longs, size: Longs) -> pa.Array:
        if len(start) == 0:
            return pa.array([], pa.binary())
        # an array of the wanted slices and the gaps between them needs no copy; take copies once
        bounds = np.empty(2 * len(start), np.int32)
        bounds[0::2], bounds[1::2] = start, start + size
        both = pa.Array.from_buffers(
            pa.binary(), len(bounds) - 1, [None, pa.py_buffer(bounds), self._buffer]
        )
        return both.take(pa.array(np.arange(0, len(bounds), 2)))

    def _map(self, of: Avro, rows: Longs) -> pa.Array:
        entry = Record("entry", (Field("key", Primitive("string")), Field("value", of)))
        entries, owner, offsets = self._items(entry, rows)
        keys, values = entries.field(0), entries.field(1)
        code = np.asarray(keys.dictionary_encode().indices).astype(np.int64)
        pairs, first = np.unique(owner * (len(code) + 1) + code, return_index=True)
        if len(pairs) < len(code):
            self._fail(rows[np.delete(owner, first)])
        return pa.MapArray.from_arrays(offsets, keys, values)

    def _items(self, kind: Avro, rows: Longs) -> tuple[Any, Longs, pa.Array]:
        """Return all items, the index in `rows` that each belongs to, and the offsets."""
        left = np.zeros(len(rows), np.int64)
        live = np.arange(len(rows))
        parts, owners = [self._read(kind, rows[:0])], [live[:0]]
        while True:
            self._blocks(rows, left, live[left[live] == 0])
            within = self.ok[rows[live]] & (self._at[rows[live]] <= self._end[rows[live]])
            self._fail(rows[live[~within]])
            live = live[within & (left[live] > 0)]
            if len(parts) > _MOST_ITEMS:
                self._fail(rows[live])
                live = live[:0]
            if len(live) == 0:
                break
            parts.append(self._read(kind, rows[live]))
            owners.append(live)
            left[live] -= 1
        owner = np.concatenate(owners)
        order = np.argsort(owner, kind="stable")
        offsets = np.concatenate([[0], np.cumsum(np.bincount(owner, minlength=len(rows)))])
        values = pa.concat_arrays(parts).take(pa.array(order))
        return values, owner[order], pa.array(offsets, pa.int32())

    def _blocks(self, rows: Longs, left: Longs, at: Longs) -> None:
        count = self._longs(rows[at])
        sized = count < 0  # then the size of the block in bytes follows
        self._longs(rows[at[sized]])
        left[at] = np.abs(count)
        self._fail(rows[at[left[at] < 0]])

    def _longs(self, rows: Longs) -> Longs:
        at = self._at[rows]
        safe = np.minimum(at, self._last)
        byte = self._bytes[safe]
        value = (byte & 0x7F).astype(np.uint64)
        more = np.flatnonzero(byte >= 0x80)
        size = np.ones(len(rows), np.int64)
        for index in range(1, 10):
            if len(more) == 0:
                break
            byte = self._bytes[safe[more] + index]
            value[more] |= (byte & 0x7F).astype(np.uint64) << np.uint64(7 * index)
            size[more] = index + 1
            more = more[byte >= 0x80]
        self._fail(rows[more])
        self._at[rows] = at + size
        return (value >> np.uint64(1)).astype(np.int64) ^ -(value & np.uint64(1)).astype(np.int64)

    def _fixed(self, rows: Longs, kind: str) -> npt.NDArray[Any]:
        width = np.dtype(kind).itemsize
        every = np.ndarray((len(self._bytes) - width + 1,), kind, self._bytes, 0, (1,))
        at = self._at[rows]
        self._at[rows] = at + width
        return every[np.minimum(at, self._last)]

    def _within(self, rows: Longs, size: Longs) -> tuple[Longs, Longs]:
        """Step over `size` bytes; what does not fit its record becomes empty, at its start."""
        at = self._at[rows]
        fits = (size >= 0) & (size <= self._end[rows] - at)
        self._fail(rows[~fits])
        size = np.where(fits, size, 0)
        self._at[rows] = at + size
        return np.where(fits, at, self._start[rows]), size

    def _valid(self, rows: Longs, value: Longs, valid: Bools) -> Longs:
        if valid.all():
            return value
        self._fail(rows[~valid])
        return np.where(valid, value, 0)

    def _fail(self, rows: Longs) -> None:
        self.ok[rows] = False


def _is_text(value: bytes) -> bool:
    try:
        value.decode()
    except UnicodeDecodeError:
        return False
    return True
