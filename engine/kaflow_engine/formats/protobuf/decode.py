"""Decode Protobuf messages with Confluent framing into columns.

Columns are found by name; one that the writer's message does not have is NULL, one of another type
is cast as SQL does.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
from google.protobuf.message import DecodeError

from kaflow_engine.errors import ModelError
from kaflow_engine.formats.asked import Bools, Part, as_asked, gathered_parts
from kaflow_engine.formats.decoded import BadValue, Decoded, Unreadable, shown
from kaflow_engine.formats.framing import HEADER, Framed, Longs, framed, unknown
from kaflow_engine.formats.pick import keep
from kaflow_engine.formats.protobuf.bulk import FlatReader, NotFlat, Wanted, wanted_of
from kaflow_engine.formats.protobuf.columns import column
from kaflow_engine.formats.protobuf.frame import message_path
from kaflow_engine.formats.protobuf.read import class_of, descriptor_of, message_of
from kaflow_engine.formats.protobuf.types import Field
from kaflow_engine.formats.types import type_text
from kaflow_engine.model.columns import Column

_AT_ONCE = 10_000
"""So many messages are held at a time."""

Path = tuple[int, ...]
Parse = Callable[[bytes], object]


def decode_protobuf(
    values: pa.Array | pa.ChunkedArray,
    columns: Sequence[Column],
    schema_by_id: Callable[[int], str],
) -> Decoded:
    """Decode `values` (binary, none null) into `columns`.

    `schema_by_id` raises UnknownSchema for an id that does not exist: its values are bad.
    """
    batch = framed(values)
    bad = list(batch.bad)
    parts: list[Part] = []
    for schema_id, schema, rows in batch.with_schemas(schema_by_id, bad):
        for path, those in _by_message(batch, rows, bad).items():
            try:
                part = _decode(schema, path, batch, those, columns)
            except ModelError as error:
                bad += unknown(schema_id, those.rows, error)
                continue
            parts.append(part)
            bad += part.bad
    return gathered_parts(parts, bad, columns)


@dataclass(frozen=True, slots=True)
class _Messages:
    """Values of one message type."""

    rows: Longs
    start: Longs
    """Where the message begins, behind the indexes."""

    def keep(self, mask: Bools) -> "_Messages":
        return _Messages(self.rows[mask], self.start[mask])


def _by_message(batch: Framed, rows: Longs, bad: list[BadValue]) -> dict[Path, _Messages]:
    """Tell values apart by their message indexes."""
    data = np.frombuffer(batch.values.buffers()[2] or b"", np.uint8)
    place = batch.start[rows] + HEADER
    more = place < batch.end[rows]
    plain = more.copy()
    plain[more] = data[place[more]] == 0  # one zero byte: the first message, as nearly all are
    found: dict[Path, tuple[list[int], list[int]]] = {}
    for row in rows[~plain].tolist():
        try:
            path, at = message_path(batch.values[row].as_py())
        except Unreadable as error:
            bad.append(error.at(row))
            continue
        those = found.setdefault(path, ([], []))
        those[0].append(row)
        those[1].append(int(batch.start[row]) + at)
    first = found.pop((0,), ([], []))
    messages = {
        path: _Messages(np.array(of, np.int64), np.array(start, np.int64))
        for path, (of, start) in found.items()
    }
    of_first = _Messages(
        np.concatenate([rows[plain], np.array(first[0], np.int64)]),
        np.concatenate([place[plain] + 1, np.array(first[1], np.int64)]),
    )
    return {(0,): of_first, **messages} if len(of_first.rows) else messages


def _decode(
    schema: str, path: Path, batch: Framed, messages: _Messages, columns: Sequence[Column]
) -> Part:
    names = {column.name for column in columns}
    fields = [field for field in message_of(schema, path).fields if field.name in names]
    kind = class_of(schema, path)
    wanted = wanted_of(descriptor_of(schema, path), fields)
    bad: list[BadValue] = []
    tables, good, messages = _flat(wanted, batch, messages)
    for start in range(0, len(messages.rows), _AT_ONCE):
        rows = messages.rows[start : start + _AT_ONCE].tolist()
        payloads = [
            batch.values[row].as_py()[at - int(batch.start[row]) :]
            for row, at in zip(rows, messages.start[start : start + _AT_ONCE].tolist(), strict=True)
        ]
        some, parsed = _parsed(kind.FromString, rows, payloads, bad)
        tables += _tables(fields, some, parsed, good, bad)
    table = pa.concat_tables(tables) if tables else _table(fields, [])
    carried = {field.name: type_text(field.type) for field in fields}
    return as_asked(table, np.array(good, np.int64), carried, columns, bad)


def _flat(
    wanted: Sequence[Wanted] | None, batch: Framed, messages: _Messages
) -> tuple[list[pa.Table], list[int], _Messages]:
    """Read what can be read in bulk; return it, its rows, and the messages that are left."""
    if wanted is None:
        return [], [], messages
    data = np.frombuffer(batch.values.buffers()[2] or b"", np.uint8)
    reader = FlatReader(data, messages.start, batch.end[messages.rows])
    try:
        arrays = reader.read(wanted)
    except NotFlat:
        return [], [], messages
    names = [each.field.name for each in wanted]
    table = keep(pa.table([*arrays, pa.array(reader.ok)], [*names, ""]), pa.array(reader.ok))
    return [table], messages.rows[reader.ok].tolist(), messages.keep(~reader.ok)


def _parsed(
    parse: Parse, rows: Sequence[int], payloads: Sequence[bytes], bad: list[BadValue]
) -> tuple[Sequence[int], list[object]]:
    try:
        return rows, list(map(parse, payloads))
    except DecodeError:
        pass
    good: list[int] = []
    messages: list[object] = []
    for row, payload in zip(rows, payloads, strict=True):
        try:
            messages.append(parse(payload))
            good.append(row)
        except DecodeError as error:
            why = f"the bytes do not fit the schema: {shown(str(error), 200)}"
            bad.append(BadValue(row, "InvalidProtobuf", why))
    return good, messages


def _tables(
    fields: Sequence[Field],
    rows: Sequence[int],
    messages: Sequence[object],
    good: list[int],
    bad: list[BadValue],
) -> list[pa.Table]:
    """Return the columns of messages; where one has none, those of each half."""
    try:
        table = _table(fields, messages)
    except Unreadable as error:
        if len(rows) == 1:
            bad.append(error.at(rows[0]))
            return []
        half = len(rows) // 2
        first = _tables(fields, rows[:half], messages[:half], good, bad)
        return first + _tables(fields, rows[half:], messages[half:], good, bad)
    good += rows
    return [table]


def _table(fields: Sequence[Field], messages: Sequence[object]) -> pa.Table:
    # the last column keeps the number of rows where no field is asked for
    arrays = [column(field, messages) for field in fields]
    flags = pa.array([True] * len(messages), pa.bool_())
    return pa.table([*arrays, flags], [*(field.name for field in fields), ""])
