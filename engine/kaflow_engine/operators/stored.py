"""Driving records and waiting rows at rest: how they are written and read."""

import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from kaflow_engine.operators.bench import DRIVERS, Bench
from kaflow_engine.operators.keyed import (
    DRIVER,
    MATCH,
    WAITING,
    place_suffix,
    read_place,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredDriver:
    """A driving record in state."""

    did: int
    suffix: bytes
    key: bytes | None
    ts: int
    place: tuple[int, int]
    batch: int
    time: int
    members: list[int]
    raw: str | None
    payload: str
    flags: int
    counted: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredRow:
    """A waiting row: a driving record with its event sides so far."""

    did: int
    suffix: bytes
    members: list[list[int]]
    texts: list[str | None]


def driver_value(row: dict[str, Any], flags: int) -> bytes:
    """Encode a row of table d."""
    kept = [
        row["ts"],
        row["d_batch"],
        row["d_time"],
        row["members"],
        row["raw"],
        row["d"],
        flags,
        row["counted"],
    ]
    return json.dumps(kept, ensure_ascii=False, separators=(",", ":")).encode()


def waiting_value(row: dict[str, Any], members: Sequence[Any], texts: Sequence[str | None]) -> bytes:
    """Encode a waiting row: its driving record, then its event sides."""
    head = json.loads(driver_value(row, 0))
    return json.dumps([*head, members, texts], ensure_ascii=False, separators=(",", ":")).encode()


def waiting_suffix(partition: int, offset: int, members: Iterable[Sequence[int] | None]) -> bytes:
    """Return the suffix of a waiting row: its driving record, then its event sides."""
    return place_suffix(partition, offset) + b"".join(
        b"\xff" * 12 if member is None or member[0] < 0 else place_suffix(member[2], member[3])
        for member in members
    )


def read_driver(
    did: int, key: bytes | None, suffix: bytes, value: bytes
) -> StoredDriver:
    """Decode what `driver_value` or `waiting_value` wrote."""
    ts, batch, time, members, raw, payload, flags, counted, *_ = json.loads(value)
    return StoredDriver(
        did=did,
        suffix=suffix,
        key=key,
        ts=ts,
        place=read_place(suffix),
        batch=batch,
        time=time,
        members=members or [],
        raw=raw,
        payload=payload,
        flags=flags,
        counted=counted,
    )


def read_row(did: int, suffix: bytes, value: bytes) -> StoredRow:
    """Decode the event sides of a waiting row."""
    *_, members, texts = json.loads(value)
    return StoredRow(did=did, suffix=suffix, members=members, texts=texts)


def driver_table(drivers: Sequence[StoredDriver], ttl: int, waited: set[int]) -> pa.Table:
    """Return stored driving records as rows of table d."""
    rows = [
        {
            "did": d.did,
            "key": d.key,
            "pos": 0,
            "fresh": False,
            "doomed": False,
            "hopeless": False,
            "ts": d.ts,
            "due": d.ts + ttl,
            "d_batch": d.batch,
            "d_time": d.time,
            "d_part": d.place[0],
            "d_off": d.place[1],
            "members": d.members,
            "raw": d.raw,
            "d": d.payload,
            "flags": d.flags,
            "waited": d.did in waited,
            "counted": d.counted,
        }
        for d in drivers
    ]
    return pa.Table.from_pylist(rows, schema=DRIVERS)


def row_table(bench: Bench, rows: Sequence[StoredRow]) -> pa.Table:
    """Return waiting rows: wid (place in `rows`), did, and o<i>, s<i> of each event side."""
    columns: dict[str, Any] = {
        "wid": pa.array(range(len(rows)), pa.int64()),
        "did": pa.array([row.did for row in rows], pa.int64()),
    }
    for n, i in enumerate(bench.events):
        columns[f"o{i}"] = pa.array(
            [None if row.texts[n] is None else row.members[n] for row in rows], pa.list_(pa.int64())
        )
        columns[f"s{i}"] = pa.array([row.texts[n] for row in rows], pa.string())
    return pa.table(columns)


def match_table(
    bench: Bench, side: int, dids: Sequence[int], keys: Sequence[bytes], places: Sequence[bytes]
) -> tuple[pa.Table, list[tuple[int, bytes]]]:
    """Return the stored matches of driving records with one event side, and their suffixes.

    Returns:
        (did, ppos 0, ord, s), and (index into `keys`, suffix) of each.
    """
    starts = [place + bytes((side,)) for place in places]
    index, suffixes, values = bench.state.entries(MATCH, keys, starts)
    decoded = [json.loads(value) for value in values]
    table = pa.table(
        {
            "did": pa.array([dids[i] for i in index], pa.int64()),
            "ppos": pa.array([0] * len(index), pa.int64()),
            "ord": pa.array([order for order, _ in decoded], pa.list_(pa.int64())),
            "s": pa.array([text for _, text in decoded], pa.string()),
        }
    )
    return table, list(zip(index, suffixes, strict=True))


def match_value(order: Sequence[int], text: str) -> bytes:
    """Encode a match."""
    return json.dumps([list(order), text], ensure_ascii=False, separators=(",", ":")).encode()


def load_stored(
    bench: Bench, keys: Sequence[bytes], first_did: int = -1
) -> tuple[list[StoredDriver], list[StoredRow]]:
    """Read the driving records and waiting rows under join keys that have not expired."""
    horizon = bench.batch.horizon - bench.plan.driving.ttl
    drivers: list[StoredDriver] = []
    rows: list[StoredRow] = []
    known: dict[tuple[bytes, tuple[int, int]], int] = {}
    if bench.retains:
        for i, suffix, value in zip(*bench.state.entries(DRIVER, keys), strict=True):
            driver = read_driver(first_did - len(drivers), keys[i], suffix, value)
            if driver.ts >= horizon:
                known[(keys[i], driver.place)] = driver.did
                drivers.append(driver)
    if bench.can_wait:
        for i, suffix, value in zip(*bench.state.entries(WAITING, keys), strict=True):
            did = known.get((keys[i], read_place(suffix)))
            if did is None and not bench.retains:
                driver = read_driver(first_did - len(drivers), keys[i], suffix, value)
                if driver.ts >= horizon:
                    did = driver.did
                    drivers.append(driver)
            if did is not None:
                rows.append(read_row(did, suffix, value))
    return drivers, rows
