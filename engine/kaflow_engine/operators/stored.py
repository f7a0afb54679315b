"""Driving records and waiting rows at rest: how they are written and read."""
# pyright: reportMissingTypeStubs=false, reportUnknownMemberType=false, reportUnknownLambdaType=false
# pyright: reportUnknownParameterType=false, reportUnknownVariableType=false
# pyright: reportUnknownArgumentType=false, reportAttributeAccessIssue=false
# pyarrow is untyped, and duckdb in part

import json
from collections.abc import Iterable, Mapping, Sequence
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
    """A waiting or emitted row: a driving record with its event sides so far."""

    did: int
    suffix: bytes
    members: list[list[int]]
    texts: list[str | None]
    last: str | None
    """Digest of what was last emitted, for rows that may be emitted again."""


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


def row_value(
    row: dict[str, Any],
    members: Sequence[Any],
    texts: Sequence[str | None],
    last: str | None = None,
) -> bytes:
    """Encode a row: its driving record, its event sides, and a digest of what was last emitted."""
    head = json.loads(driver_value(row, 0))
    kept = [*head, members, texts, last]
    return json.dumps(kept, ensure_ascii=False, separators=(",", ":")).encode()


def driver_suffix(row: Mapping[str, Any]) -> bytes:
    """Return the suffix of a row of table d: its record, then its event sides of earlier steps."""
    members: Sequence[int] = row["members"] or ()
    earlier = [members[i : i + 4] for i in range(0, len(members), 4)]
    return place_suffix(row["d_part"], row["d_off"]) + member_suffix(earlier)


def member_suffix(members: Iterable[Sequence[int] | None]) -> bytes:
    """Return what tells rows of one driving row apart: its event sides."""
    return b"".join(
        b"\xff" * 12 if member is None or member[0] < 0 else place_suffix(member[2], member[3])
        for member in members
    )


def read_driver(did: int, key: bytes | None, suffix: bytes, value: bytes) -> StoredDriver:
    """Decode what `driver_value` or `row_value` wrote."""
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
    """Decode what `row_value` wrote behind the driving record."""
    *_, members, texts, last = json.loads(value)
    return StoredRow(did=did, suffix=suffix, members=members, texts=texts, last=last)


def driver_table(drivers: Sequence[StoredDriver], ttl: int, waited: Mapping[int, int]) -> pa.Table:
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
            "waited": waited.get(d.did, 0),
            "counted": d.counted,
            "forced": False,
        }
        for d in drivers
    ]
    return pa.Table.from_pylist(rows, schema=DRIVERS)


def row_table(bench: Bench, rows: Sequence[StoredRow]) -> pa.Table:
    """Return stored rows: wid (place in `rows`), did, and o<i>, s<i> of each event side."""
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
    known: dict[tuple[bytes, bytes], int] = {}
    if bench.retains:
        for i, suffix, value in zip(*bench.state.entries(DRIVER, keys), strict=True):
            driver = read_driver(first_did - len(drivers), keys[i], suffix, value)
            if driver.ts >= horizon:
                known[(keys[i], suffix)] = driver.did
                drivers.append(driver)
    if bench.can_wait:
        for i, suffix, value in zip(*bench.state.entries(WAITING, keys), strict=True):
            did = known.get((keys[i], suffix[: bench.driver_width]))
            if did is None and not bench.retains:
                driver = read_driver(first_did - len(drivers), keys[i], suffix, value)
                if driver.ts >= horizon:
                    did = driver.did
                    drivers.append(driver)
            if did is not None:
                rows.append(read_row(did, suffix, value))
    return drivers, rows
