"""Encode many Avro records at once: a piece of bytes per field and record, joined at the end.

A piece that a record does not have (of a field inside of a NULL struct, say) is empty. A value that
the schema cannot hold is noted with its reason and written as something harmless.
"""

from typing import assert_never

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from kaflow_engine.duck.wide.vectors import is_column
from kaflow_engine.formats.avro.pieces import (
    Bools,
    CannotWrite,
    Longs,
    big_endian,
    decimals,
    is_number,
    joined,
    numbers,
    only,
    piece,
    varints,
    whole,
)
from kaflow_engine.formats.avro.types import (
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
from kaflow_engine.formats.avro.wide import wide_decimals


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
        start = piece(every * len(header), np.tile(np.frombuffer(header, np.uint8), len(rows)))
        return joined([start, *self._fields(kind, columns, every, rows, "")])

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
            byte = piece(present.astype(np.int64), branch[present])
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
                if not isinstance(values, pa.MapArray):
                    raise CannotWrite(f"'{path}' is not a map")
                entries = pa.StructArray.from_arrays([values.keys, values.items], ["key", "value"])
                pairs = pa.ListArray.from_arrays(values.offsets, entries, mask=values.is_null())
                return self._items(_entry(of), pairs, valid, owner, path)
            case Record():
                if not isinstance(values, pa.StructArray):
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
                return [varints(numbers(index, pa.int64()), valid)]
            case Primitive(name="boolean"):
                if not pa.types.is_boolean(values.type):
                    raise CannotWrite(f"'{path}' is not a boolean")
                truth = np.asarray(values.fill_null(False)).astype(np.uint8)
                return [piece(valid.astype(np.int64), truth[valid])]
            case Primitive(name="int" | "long" as name, logical=logical):
                number = whole(values, logical, path)
                if name == "int":
                    fits = number == number.astype(np.int32)
                    self._note(owner[valid & ~fits], f"column '{path}' is beyond the range of int")
                return [varints(number, valid)]
            case Primitive(name="float" | "double" as name):
                if not (is_number(values.type)):
                    raise CannotWrite(f"'{path}' is not a number")
                wide = pa.float32() if name == "float" else pa.float64()
                number = numbers(values, wide)[valid]
                return [piece(valid * np.int64(number.itemsize), number.view(np.uint8))]
            case (
                Primitive(logical=Logical(name="decimal") as logical)
                | Fixed(logical=Logical(name="decimal") as logical)
            ) if is_column(values):
                return self._wide(kind, values, logical, valid, owner, path)
            case Primitive(logical=Logical(name="decimal") as logical):
                data, size = decimals(values, logical, valid)
                return [varints(size, valid), piece(np.where(valid, size, 0), data)]
            case Fixed(size=width, logical=Logical(name="decimal") as logical):
                return [self._fixed_decimal(values, logical, width, valid, owner, path)]
            case Fixed(size=width):
                data = values.cast(pa.binary())
                size = numbers(pc.binary_length(data), pa.int64())
                self._note(owner[valid & (size != width)], f"column '{path}' is not {width} bytes")
                return [only(data, valid)]
            case Primitive(name=name):
                texts = pa.types.is_string(values.type) or pa.types.is_dictionary(values.type)
                if not texts and not (name == "bytes" and pa.types.is_binary(values.type)):
                    if not pa.types.is_null(values.type):
                        raise CannotWrite(f"'{path}' is no {name}")
                data = values.cast(pa.string() if texts else pa.binary()).cast(pa.binary())
                size = numbers(pc.binary_length(data), pa.int64())
                return [varints(size, valid), only(data, valid)]
            case _:
                assert_never(kind)

    def _wide(
        self,
        kind: Primitive | Enum | Fixed,
        values: pa.Array,
        logical: Logical,
        valid: Bools,
        owner: Longs,
        path: str,
    ) -> list[pa.Array]:
        width = kind.size if isinstance(kind, Fixed) else None
        made = wide_decimals(values, logical, width)
        fits = np.array([each is not None for each in made], np.bool_)
        room = f"{width} bytes" if width else f"{logical.precision} digits"
        self._note(owner[valid & ~fits], f"column '{path}' does not fit {room}")
        data = pa.array([each or b"" for each in made], pa.binary())
        if width is not None:
            return [only(data, valid & fits)]
        size = numbers(pc.binary_length(data), pa.int64())
        return [varints(size, valid), only(data, valid)]

    def _fixed_decimal(
        self, values: pa.Array, logical: Logical, width: int, valid: Bools, owner: Longs, path: str
    ) -> pa.Array:
        big = big_endian(values, logical)
        sign = np.where(big[:, :1] >= 0x80, 0xFF, 0).astype(np.uint8)
        head, tail = big[:, : max(0, 16 - width)], big[:, max(0, 16 - width) :]
        fits = (head == sign).all(axis=1) & ((tail[:, 0] >= 0x80) == (sign[:, 0] > 0))
        self._note(owner[valid & ~fits], f"column '{path}' does not fit {width} bytes")
        padding = np.repeat(sign, max(0, width - 16), axis=1)
        return piece(valid * np.int64(width), np.hstack([padding, tail])[valid].ravel())

    def _items(
        self, kind: Avro, values: pa.Array, valid: Bools, owner: Longs, path: str
    ) -> list[pa.Array]:
        if pa.types.is_fixed_size_list(values.type):
            values = values.cast(pa.list_(values.type.value_type))
        if not pa.types.is_list(values.type):
            raise CannotWrite(f"'{path}' is not a list")
        lists = values.filter(pa.array(valid))
        items = pc.list_flatten(lists)
        count = np.zeros(len(valid), np.int64)
        count[valid] = numbers(pc.list_value_length(lists), pa.int64())
        every = np.ones(len(items), np.bool_)
        pieces = self._write(kind, items, every, np.repeat(owner, count), f"{path}[]")
        items_bytes = joined(pieces) if pieces else pa.array([b""] * len(items), pa.binary())
        bounds = np.frombuffer(items_bytes.buffers()[1] or bytes(4), np.int32)[: len(items) + 1]
        ends = bounds[np.concatenate([[0], np.cumsum(count)])]
        data = np.frombuffer(items_bytes.buffers()[2] or b"", np.uint8)[: bounds[-1]]
        end = piece(valid.astype(np.int64), np.zeros(int(valid.sum()), np.uint8))
        return [varints(count, valid & (count > 0)), piece(np.diff(ends), data), end]

    def _note(self, records: Longs, why: str) -> None:
        for record in records.tolist():
            self.wrong.setdefault(record, why)


def _entry(of: Avro) -> Record:
    return Record("entry", (Field("key", Primitive("string")), Field("value", of)))
