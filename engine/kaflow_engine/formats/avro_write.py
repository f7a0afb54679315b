"""Encode many Avro records at once: a piece of bytes per field and record, joined at the end.

A piece that a record does not have (of a field inside of a NULL struct, say) is empty. A value that
the schema cannot hold is noted with its reason and written as something harmless.
"""
# pyright: reportUnknownMemberType=false
# numpy's and pyarrow's stubs leave types out

from typing import Any, assert_never

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from kaflow_engine.formats.avro_types import (
    NULL,
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

Longs = npt.NDArray[np.int64]
Bools = npt.NDArray[np.bool_]
Bytes = npt.NDArray[np.uint8]

_TIMES = {
    "date": pa.date32(),
    "time-millis": pa.time32("ms"),
    "time-micros": pa.time64("us"),
    "timestamp-millis": pa.timestamp("ms"),
    "timestamp-micros": pa.timestamp("us"),
    "timestamp-nanos": pa.timestamp("ns"),
    "local-timestamp-millis": pa.timestamp("ms"),
    "local-timestamp-micros": pa.timestamp("us"),
    "local-timestamp-nanos": pa.timestamp("ns"),
}


class CannotWrite(Exception):
    """The bulk writer has no way from this column to this type."""


class BulkWriter:
    """Writes the records of one table."""

    def __init__(self) -> None:
        self.wrong: dict[int, str] = {}
        """Record -> why it cannot be written."""

    def write(self, kind: Record, table: pa.Table, header: bytes) -> pa.Array:
        """Return one binary value per row: the header and the record."""
        rows = np.arange(table.num_rows)
        every = np.ones(len(rows), np.bool_)
        columns = {name: table.column(name).combine_chunks() for name in table.column_names}
        start = _piece(every * len(header), np.tile(np.frombuffer(header, np.uint8), len(rows)))
        return _joined([start, *self._fields(kind, columns, every, rows, "")])

    def _fields(
        self, kind: Record, columns: dict[str, pa.Array], present: Bools, owner: Longs, path: str
    ) -> list[pa.Array]:
        pieces: list[pa.Array] = []
        for field in kind.fields:
            values = columns.get(field.name)
            if values is None:
                if field.default not in (None, "null"):
                    raise CannotWrite(f"'{field.name}' takes a default")
                values = pa.nulls(len(present))
            pieces += self._write(field.type, values, present, owner, f"{path}{field.name}")
        return pieces

    def _write(
        self, kind: Avro, values: pa.Array, present: Bools, owner: Longs, path: str
    ) -> list[pa.Array]:
        if not present.any():
            return []
        valid = present & np.asarray(values.is_valid())
        found = nullable(kind)
        if found is not None:
            absent, other = found
            branch = np.where(valid, 2 * (1 - absent), 2 * absent).astype(np.uint8)
            byte = _piece(present.astype(np.int64), branch[present])
            return [byte, *self._write(other, values, valid, owner, path)]
        if kind == NULL:
            self._note(owner[valid], f"column '{path}' has a value, the schema has none")
            return []
        self._note(
            owner[present & ~valid], f"column '{path}' is NULL, the schema does not allow it"
        )
        match kind:
            case Primitive() | Enum() | Fixed():
                return self._plain(kind, values, valid, owner, path)
            case Array(items=items):
                return self._items(items, values, valid, owner, path)
            case MapOf(values=of):
                if not pa.types.is_map(values.type):
                    raise CannotWrite(f"'{path}' is not a map")
                entries = pa.StructArray.from_arrays([values.keys, values.items], ["key", "value"])
                pairs = pa.ListArray.from_arrays(values.offsets, entries, mask=values.is_null())
                return self._items(_entry(of), pairs, valid, owner, path)
            case Record():
                if not pa.types.is_struct(values.type):
                    raise CannotWrite(f"'{path}' is not a struct")
                names = [field.name for field in values.type]
                columns = dict(zip(names, values.flatten(), strict=True))
                return self._fields(kind, columns, valid, owner, f"{path}.")
            case Union() | Recursive():
                raise CannotWrite(f"'{path}' is a union of several types")
            case _:
                assert_never(kind)

    def _plain(
        self,
        kind: Primitive | Enum | Fixed,
        values: pa.Array,
        valid: Bools,
        owner: Longs,
        path: str,
    ) -> list[pa.Array]:
        match kind:
            case Enum(symbols=symbols):
                index = pc.index_in(values.cast(pa.string()), pa.array(symbols, pa.string()))
                self._note(
                    owner[valid & np.asarray(index.is_null())],
                    f"column '{path}' is none of {', '.join(symbols)}",
                )
                return [_varints(_numbers(index, pa.int64()), valid)]
            case Primitive(name="boolean"):
                if not pa.types.is_boolean(values.type):
                    raise CannotWrite(f"'{path}' is not a boolean")
                truth = np.asarray(values.fill_null(False)).astype(np.uint8)
                return [_piece(valid.astype(np.int64), truth[valid])]
            case Primitive(name="int" | "long" as name, logical=logical):
                number = _whole(values, logical, path)
                if name == "int":
                    fits = number == number.astype(np.int32)
                    self._note(owner[valid & ~fits], f"column '{path}' is beyond the range of int")
                return [_varints(number, valid)]
            case Primitive(name="float" | "double" as name):
                if not (_is_number(values.type)):
                    raise CannotWrite(f"'{path}' is not a number")
                wide = pa.float32() if name == "float" else pa.float64()
                number = _numbers(values, wide)[valid]
                return [_piece(valid * np.int64(number.itemsize), number.view(np.uint8))]
            case Primitive(logical=Logical(name="decimal") as logical):
                data, size = _decimals(values, logical, valid)
                return [_varints(size, valid), _piece(np.where(valid, size, 0), data)]
            case Fixed(size=width, logical=Logical(name="decimal") as logical):
                return [self._fixed_decimal(values, logical, width, valid, owner, path)]
            case Fixed(size=width):
                data = values.cast(pa.binary())
                size = _numbers(pc.binary_length(data), pa.int64())
                self._note(owner[valid & (size != width)], f"column '{path}' is not {width} bytes")
                return [_only(data, valid)]
            case Primitive(name=name):
                texts = pa.types.is_string(values.type) or pa.types.is_dictionary(values.type)
                if not texts and not (name == "bytes" and pa.types.is_binary(values.type)):
                    if not pa.types.is_null(values.type):
                        raise CannotWrite(f"'{path}' is no {name}")
                data = values.cast(pa.string() if texts else pa.binary()).cast(pa.binary())
                size = _numbers(pc.binary_length(data), pa.int64())
                return [_varints(size, valid), _only(data, valid)]
            case _:
                assert_never(kind)

    def _fixed_decimal(
        self, values: pa.Array, logical: Logical, width: int, valid: Bools, owner: Longs, path: str
    ) -> pa.Array:
        big = _big_endian(values, logical)
        sign = np.where(big[:, :1] >= 0x80, 0xFF, 0).astype(np.uint8)
        head, tail = big[:, : max(0, 16 - width)], big[:, max(0, 16 - width) :]
        fits = (head == sign).all(axis=1) & ((tail[:, 0] >= 0x80) == (sign[:, 0] > 0))
        self._note(owner[valid & ~fits], f"column '{path}' does not fit {width} bytes")
        padding = np.repeat(sign, max(0, width - 16), axis=1)
        return _piece(valid * np.int64(width), np.hstack([padding, tail])[valid].ravel())

    def _items(
        self, kind: Avro, values: pa.Array, valid: Bools, owner: Longs, path: str
    ) -> list[pa.Array]:
        if pa.types.is_fixed_size_list(values.type):
            values = values.cast(pa.list_(values.type.value_type))
        if not pa.types.is_list(values.type):
            raise CannotWrite(f"'{path}' is not a list")
        lists = values.filter(pa.array(valid))
        items = lists.flatten()
        count = np.zeros(len(valid), np.int64)
        count[valid] = _numbers(pc.list_value_length(lists), pa.int64())
        every = np.ones(len(items), np.bool_)
        pieces = self._write(kind, items, every, np.repeat(owner, count), f"{path}[]")
        joined = _joined(pieces) if pieces else pa.array([b""] * len(items), pa.binary())
        bounds = np.frombuffer(joined.buffers()[1] or bytes(4), np.int32)[: len(items) + 1]
        ends = bounds[np.concatenate([[0], np.cumsum(count)])]
        data = np.frombuffer(joined.buffers()[2] or b"", np.uint8)[: bounds[-1]]
        end = _piece(valid.astype(np.int64), np.zeros(int(valid.sum()), np.uint8))
        return [_varints(count, valid & (count > 0)), _piece(np.diff(ends), data), end]

    def _note(self, records: Longs, why: str) -> None:
        for record in records.tolist():
            self.wrong.setdefault(record, why)


def _entry(of: Avro) -> Record:
    return Record("entry", (Field("key", Primitive("string")), Field("value", of)))


def _whole(values: pa.Array, logical: Logical | None, path: str) -> Longs:
    kind = _TIMES.get(logical.name) if logical else None
    if pa.types.is_temporal(values.type) and not pa.types.is_interval(values.type):
        if kind is None:
            raise CannotWrite(f"'{path}' is a time, the schema has a number")
        values = values.cast(kind, safe=False)
        values = values.cast(pa.int32()) if kind.bit_width == 32 else values
    elif not _is_number(values.type):
        raise CannotWrite(f"'{path}' is not a number")
    return _numbers(values, pa.int64())


def _is_number(kind: pa.DataType) -> bool:
    types = pa.types
    return any(
        is_kind(kind)
        for is_kind in (types.is_integer, types.is_floating, types.is_decimal, types.is_null)
    )


def _numbers(values: pa.Array, kind: pa.DataType) -> npt.NDArray[Any]:
    filled = values.cast(kind)
    return np.asarray(filled.fill_null(0) if filled.null_count else filled)


def _decimals(values: pa.Array, logical: Logical, valid: Bools) -> tuple[Bytes, Longs]:
    big = _big_endian(values, logical)
    sign = np.where(big[:, :1] >= 0x80, 0xFF, 0).astype(np.uint8)
    differs = big != sign
    first = np.where(differs.any(axis=1), differs.argmax(axis=1), 15)
    top = big[np.arange(len(big)), first] >= 0x80
    first = first - ((top != (sign[:, 0] > 0)) & (first > 0))
    keep = (np.arange(16) >= first[:, None]) & valid[:, None]
    return big[keep], (16 - first).astype(np.int64)


def _big_endian(values: pa.Array, logical: Logical) -> Bytes:
    if not _is_number(values.type):
        raise CannotWrite("not a number")
    found = values.cast(pa.decimal128(logical.precision, logical.scale))
    data = np.frombuffer(found.buffers()[1] or b"", np.uint8)
    raw = data[found.offset * 16 : (found.offset + len(found)) * 16].reshape(-1, 16)
    return np.ascontiguousarray(raw[:, ::-1])


def _varints(values: Longs, present: Bools) -> pa.Array:
    zigzag = ((values << 1) ^ (values >> 63)).astype(np.uint64)
    size = np.ones(len(values), np.int64)
    rest = zigzag >> np.uint64(7)
    while rest.any():
        size += rest > 0
        rest >>= np.uint64(7)
    place = np.arange(int(size.max(initial=1)))
    byte = (zigzag[:, None] >> (7 * place).astype(np.uint64)).astype(np.uint8) & 0x7F
    byte |= np.where(place < size[:, None] - 1, 0x80, 0).astype(np.uint8)
    used = (place < size[:, None]) & present[:, None]
    return _piece(np.where(present, size, 0), byte[used])


def _only(values: pa.Array, present: Bools) -> pa.Array:
    if present.all():
        return values
    return pc.if_else(pa.array(present), values, pa.scalar(b"", pa.binary()))


def _piece(sizes: Longs, data: Bytes) -> pa.Array:
    ends = np.zeros(len(sizes) + 1, np.int32)
    np.cumsum(sizes, out=ends[1:])
    buffers = [None, pa.py_buffer(ends), pa.py_buffer(np.ascontiguousarray(data))]
    return pa.Array.from_buffers(pa.binary(), len(sizes), buffers)


def _joined(pieces: list[pa.Array]) -> pa.Array:
    return pc.binary_join_element_wise(*pieces, b"")
