"""Driving records, waiting rows and records of event sides at rest: how they are kept and read."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from kaflow_engine.operators.join.identity import (
    MEMBER,
    NUMBER,
    OFFSET,
    PARTITION,
    Identity,
)
from kaflow_engine.operators.join.workspace import DRIVERS, JoinWorkspace
from kaflow_engine.operators.keyed_state import DRIVER, WAITING
from kaflow_engine.state.binary_columns import (
    Items,
    bytes_of_lists,
    fixed,
    heads,
    joined,
    lists_of,
    lists_of_bytes,
    pieces,
    rows_of,
)

_HEAD = np.dtype(
    [
        *((name, "<i8") for name in ("ts", "d_batch", "d_time")),
        *((name, "<i4") for name in ("flags", "members", "raw", "d")),
        ("counted", "u1"),
    ]
)
"""The head of a kept driving record; `members`, `raw` (-1: null) and `d` are lengths."""

_ORDER = np.dtype([(name, "<i8") for name in ("batch", "time", "part", "off")])
_EVENT = np.dtype([("ts", "<i8"), ("order", _ORDER)])
_TIME = np.dtype([("ts", "<i8")])
"""The head of both."""
_PLACE = np.dtype([("part", ">u4"), ("off", ">i8")])
_NO_PLACE = b"\xff" * _PLACE.itemsize


@dataclass(frozen=True, slots=True, kw_only=True)
class Stored:
    """What is kept under join keys."""

    drivers: pa.Table
    """Schema DRIVERS, and `suffix`."""
    rows: pa.Table
    """Waiting or emitted rows: did, suffix, and `extra`, which `row_table` takes apart."""


def stored_times(values: pa.BinaryArray) -> Items:
    """Return the event times with which driving records, or those of event sides, are kept."""
    return heads(values, _TIME)["ts"].astype(np.int64)


def stored_flags(values: pa.BinaryArray) -> tuple[Items, Items]:
    """Return the flags of kept driving records, and whether they are counted."""
    head = heads(values, _HEAD)
    return head["flags"].astype(np.int64), head["counted"].astype(np.bool_)


def driver_values(rows: pa.Table, extra: pa.BinaryArray | None = None) -> pa.BinaryArray:
    """Encode rows of table d; what else a row is goes behind them."""
    members = pc.fill_null(bytes_of_lists(rows["members"].combine_chunks()), b"")
    raw = rows["raw"].combine_chunks().cast(pa.binary())
    payload = rows["d"].combine_chunks().cast(pa.binary())
    head = np.zeros(rows.num_rows, _HEAD)
    for name in ("ts", "d_batch", "d_time", "flags", "counted"):
        head[name] = rows[name].to_numpy()
    head["members"] = pc.binary_length(members).to_numpy()
    head["raw"] = pc.fill_null(pc.binary_length(raw), -1).to_numpy()
    head["d"] = pc.binary_length(payload).to_numpy()
    rest = [] if extra is None else [extra]
    return joined(fixed(head), members, pc.fill_null(raw, b""), payload, *rest)


def extras(rows: pa.Table, events: Sequence[int], last: bool = False) -> pa.BinaryArray | None:
    """Encode the event sides of rows (o<i>, s<i>), and the digest of what was last emitted."""
    if not events and not last:
        return None
    names = [*_sides(events), *(["last"] if last else [])]
    if all(rows[name].null_count == rows.num_rows for name in names):  # it has met nothing so far
        return pa.repeat(pa.scalar(_extra(dict.fromkeys(names), events)), rows.num_rows)
    found = [_extra(row, events) for row in rows.select(names).to_pylist()]
    return pa.array(found, pa.binary())


def _extra(row: Mapping[str, Any], events: Sequence[int]) -> bytes:
    kept = [[row[name] for name in _sides(events)], row.get("last")]
    return json.dumps(kept, ensure_ascii=False, separators=(",", ":")).encode()


def driver_suffixes(rows: pa.Table, identity: Identity) -> pa.BinaryArray:
    """Return the suffixes of rows of table d: their records, then event sides of earlier joins."""
    lists = rows["members"].combine_chunks()
    if identity.of_groups:
        own = _places(rows["d_batch"].to_numpy(), identity.own(lists, NUMBER))
    else:
        own = _places(rows["d_part"].to_numpy(), rows["d_off"].to_numpy())
    earlier = identity.earlier(lists)
    starts = range(0, MEMBER * identity.passed, MEMBER)
    return joined(own, *(_member(earlier[:, i : i + MEMBER]) for i in starts))


def row_suffixes(rows: pa.Table, events: Sequence[int], identity: Identity) -> pa.BinaryArray:
    """Return the suffixes of rows: those of their driving rows, then their event sides."""
    members: list[pa.BinaryArray] = []
    for i in events:
        lists = pc.fill_null(rows[f"o{i}"].combine_chunks(), [-1] * MEMBER)
        members.append(_member(rows_of(lists, MEMBER)))
    return joined(driver_suffixes(rows, identity), *members)


def order_suffixes(orders: pa.ListArray) -> pa.BinaryArray:
    """Return the suffixes of entries that stand for a record of an event side."""
    return _member(rows_of(orders, MEMBER))


def event_values(
    stamps: pa.Array | pa.ChunkedArray, orders: pa.ListArray, texts: pa.Array
) -> pa.BinaryArray:
    """Encode records of event sides: event time, order, and text."""
    numbers = rows_of(orders, MEMBER)
    head = np.empty(len(stamps), _EVENT)
    head["ts"] = stamps.to_numpy()
    for i, name in enumerate(_ORDER.names or ()):
        head["order"][name] = numbers[:, i]
    return joined(fixed(head), texts.cast(pa.binary()))


def read_events(values: Sequence[bytes]) -> tuple[pa.Array, pa.ListArray, pa.Array]:
    """Decode what `event_values` wrote."""
    array = pa.array(values, pa.binary())
    head = heads(array, _EVENT)
    numbers = np.stack([head["order"][name] for name in _ORDER.names or ()], axis=1)
    texts = pc.binary_slice(array, _EVENT.itemsize, 1 << 31).cast(pa.string())
    return pa.array(np.ascontiguousarray(head["ts"])), lists_of(numbers), texts


def read_drivers(
    identity: Identity,
    ttl: int,
    first_did: int,
    keys: Sequence[bytes | None] | pa.BinaryArray,
    suffixes: Sequence[bytes] | pa.BinaryArray,
    values: Sequence[bytes] | pa.BinaryArray,
) -> pa.Table:
    """Decode kept driving records.

    Args:
        identity: What their suffixes say.
        ttl: Milliseconds that driving records are kept.
        first_did: The `did` of the first one; the next ones go down.
        keys: Join keys behind their shard byte.
        suffixes: Of their entries.
        values: What `driver_values` wrote.

    Returns:
        Schema DRIVERS, and `suffix` and `extra`.
    """
    count = len(values)
    array = pa.array(values, pa.binary())
    head = heads(array, _HEAD)
    place = heads(pa.array(suffixes, pa.binary()), _PLACE)
    starts = np.full(count, _HEAD.itemsize, np.int64)
    parts: dict[str, pa.BinaryArray] = {}
    for name in ("members", "raw", "d"):
        lengths = np.maximum(head[name], 0).astype(np.int64)
        parts[name] = pieces(array, starts, lengths)
        starts = starts + lengths
    sizes = pc.binary_length(array).to_numpy() if count else np.zeros(0, np.int64)
    numbers = {name: _array(head[name]) for name in ("ts", "d_batch", "d_time", "flags")}
    members = lists_of_bytes(parts["members"])
    own: tuple[Items, Items] = (place["part"], place["off"])
    if identity.of_groups:
        own = (identity.own(members, PARTITION), identity.own(members, OFFSET))
    columns: dict[str, Any] = {
        **numbers,
        "did": pa.array(first_did - np.arange(count)),
        "key": pa.array(keys, pa.binary()),
        "pos": 0,
        "fresh": False,
        "doomed": False,
        "hopeless": False,
        "due": _array(head["ts"] + ttl),
        "d_part": _array(own[0]),
        "d_off": _array(own[1]),
        "members": members,
        "raw": pc.if_else(pa.array(head["raw"] >= 0), parts["raw"].cast(pa.string()), None),
        "d": parts["d"].cast(pa.string()),
        "waited": 0,
        "counted": pa.array(head["counted"].astype(np.bool_)),
        "forced": False,
    }
    arrays = [
        columns[f.name]
        if isinstance(columns[f.name], pa.Array)
        else pa.repeat(pa.scalar(columns[f.name], f.type), count)
        for f in DRIVERS
    ]
    table = pa.Table.from_arrays(arrays, schema=DRIVERS)
    table = table.append_column("suffix", pa.array(suffixes, pa.binary()))
    return table.append_column("extra", pieces(array, starts, sizes - starts))


def waited(drivers: pa.Table, rows: pa.Table) -> pa.Table:
    """Return drivers (schema DRIVERS) with the number of their rows; all `did` are negative."""
    counts = np.bincount(-rows["did"].to_numpy(), minlength=1)
    places = -drivers["did"].to_numpy()
    found = np.where(places < len(counts), counts[np.minimum(places, len(counts) - 1)], 0)
    index = DRIVERS.get_field_index("waited")
    table = drivers.select(DRIVERS.names)
    return table.set_column(index, DRIVERS.field(index), pa.array(found))


def row_table(work: JoinWorkspace, rows: pa.Table) -> pa.Table:
    """Return rows (see Stored) with wid, their place in `rows`, and o<i>, s<i>, and last."""
    columns: dict[str, Any] = {"wid": pa.array(np.arange(rows.num_rows)), "did": rows["did"]}
    if not work.events and not work.driving.reemit:
        return pa.table(columns)
    extra = rows["extra"].combine_chunks().dictionary_encode()  # rows that met nothing have one
    nothing: tuple[list[Any], None] = ([], None)
    decoded = [json.loads(each) if each else nothing for each in extra.dictionary.to_pylist()]
    for n, name in enumerate(_sides(work.events)):
        kind = pa.list_(pa.int64()) if name.startswith("o") else pa.string()
        columns[name] = pa.array([sides[n] for sides, _ in decoded], kind).take(extra.indices)
    columns["last"] = pa.array([last for _, last in decoded], pa.string()).take(extra.indices)
    return pa.table(columns)


def load_stored(work: JoinWorkspace, keys: Sequence[bytes], first_did: int = -1) -> Stored:
    """Read the driving records and waiting rows under join keys that have not expired."""
    ttl = work.driving.ttl
    horizon = work.horizon - ttl
    index, suffixes, values = work.state.entries(DRIVER, keys) if work.retains else ([], [], [])
    drivers = read_drivers(
        work.identity, ttl, first_did, [keys[i] for i in index], suffixes, values
    )
    current = pc.greater_equal(drivers["ts"], horizon).combine_chunks()
    drivers = drivers.filter(current)
    rows = drivers.slice(0, 0)
    if work.can_wait:
        if work.retains:  # no row waits without its driving record
            keys = pc.unique(drivers["key"]).to_pylist()
        index, suffixes, values = work.state.entries(WAITING, keys)
        rows = read_drivers(
            work.identity, ttl, first_did, [keys[i] for i in index], suffixes, values
        )
        if work.retains:
            rows = rows.set_column(0, "did", _owners(rows, drivers, work.identity))
            rows = rows.filter(rows["did"].is_valid())
        else:
            rows = rows.filter(pc.greater_equal(rows["ts"], horizon))
            drivers = rows
    return Stored(
        drivers=drivers.drop_columns("extra"), rows=rows.select(["did", "suffix", "extra"])
    )


def _owners(rows: pa.Table, drivers: pa.Table, identity: Identity) -> pa.ChunkedArray:
    """Return the `did` of the driving record of each row, null where it is not among `drivers`."""
    own = pc.binary_slice(rows["suffix"].combine_chunks(), 0, identity.width)
    known = joined(drivers["key"].combine_chunks(), drivers["suffix"].combine_chunks())
    at = pc.index_in(joined(rows["key"].combine_chunks(), own), value_set=known)
    return drivers["did"].take(at)


def _sides(events: Sequence[int]) -> list[str]:
    return [name for i in events for name in (f"o{i}", f"s{i}")]


def _member(numbers: Items) -> pa.BinaryArray:
    found = _places(numbers[:, 2], numbers[:, 3])
    if (numbers[:, 0] >= 0).all():
        return found
    return pc.if_else(pa.array(numbers[:, 0] >= 0), found, pa.scalar(_NO_PLACE, pa.binary()))


def _places(parts: Items, offsets: Items) -> pa.BinaryArray:
    places = np.empty(len(parts), _PLACE)
    places["part"], places["off"] = parts, offsets
    return fixed(places)


def _array(numbers: Items) -> pa.Array:
    return pa.array(numbers.astype(np.int64))
