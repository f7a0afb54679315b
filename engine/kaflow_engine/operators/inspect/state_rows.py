"""Entries of a state as rows with the columns and types that they stand for."""

import json
from collections.abc import Sequence
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from kaflow_engine.flow.edges import SideParams
from kaflow_engine.flow.flow import Flow
from kaflow_engine.flow.graph import operator_of_state, side_name, source_of
from kaflow_engine.flow.operators import Aggregate, KeyedJoin, Ledger
from kaflow_engine.flow.tables import Materialize, TableJoin
from kaflow_engine.flow.timed import Runs
from kaflow_engine.model.columns import Column
from kaflow_engine.operators.inspect.entry_columns import Decoded, decoded, entry_rows, key_texts
from kaflow_engine.operators.inspect.group_rows import decode_groups, decode_kept
from kaflow_engine.operators.inspect.run_rows import decode_waiting, decode_writers
from kaflow_engine.operators.inspect.sent_rows import decode_sent
from kaflow_engine.operators.inspect.state_sides import StateSide, driving_behind, state_sides
from kaflow_engine.operators.inspect.table_rows import decode_side, decode_table
from kaflow_engine.operators.join.identity import (
    events_of_groups,
    identity_of,
)
from kaflow_engine.operators.join.row_codec import read_drivers, read_events
from kaflow_engine.operators.join.temporal_join import read_versions
from kaflow_engine.operators.keyed_state import read_place
from kaflow_engine.operators.outcomes.ledger import read_account
from kaflow_engine.operators.outcomes.outcomes import class_sql
from kaflow_engine.state.due_index import of_index
from kaflow_engine.state.keys import split_entry


def decode(flow: Flow, side: StateSide, keys: Sequence[bytes], values: Sequence[bytes]) -> Decoded:
    """Decode entries of one side.

    Args:
        flow: That of the state.
        side: What they are.
        keys: Of the entries.
        values: As many.
    """
    match side.kind:
        case "due":
            return _due(flow, side, keys, values)
        case "accounts":
            return _accounts(flow, side, keys, values)
        case "groups":
            return decode_groups(_aggregate(flow, side), keys, values)
        case "rows":
            return decode_kept(_aggregate(flow, side), keys, values)
        case "table":
            return decode_table(_table(flow, side), keys, values)
        case "left" | "right":
            return decode_side(_table_join(flow, side), side.byte, keys, values)
        case "batch":
            return decode_waiting(_runs(flow, side), keys, values)
        case "writers":
            return decode_writers(keys, values)
        case "throttled":
            return decode_sent(keys, values)
        case "found":
            return _found(flow, side, keys, values)
        case "dimension":
            return _versions(flow, side, keys, values)
        case "events":
            return _events(flow, side, keys, values)
        case "matches":
            return _matches(flow, side, keys, values)
        case _:
            return _drivers(flow, side, keys, values)


def _versions(
    flow: Flow, side: StateSide, keys: Sequence[bytes], values: Sequence[bytes]
) -> Decoded:
    stamps, texts = read_versions(pa.array(values, pa.binary()))
    nothing = [None] * len(keys)
    rows = entry_rows(key_texts(keys), nothing, stamps, nothing, s=texts)
    return decoded(rows, [("s", _named(_params(flow, side)))])


def _found(flow: Flow, side: StateSide, keys: Sequence[bytes], values: Sequence[bytes]) -> Decoded:
    """Decode rows of a table by a join key; `row` is the key of the row."""
    stamps, texts = read_versions(pa.array(values, pa.binary()))
    nothing = [None] * len(keys)
    names = pa.array([split_entry(key)[2].decode() for key in keys], pa.string())
    rows = entry_rows(key_texts(keys), nothing, stamps, nothing, s=texts, name=names)
    named = _named(_params(flow, side))
    return decoded(rows, [("s", named)], [(Column("row", "VARCHAR"), "name")])


def _events(flow: Flow, side: StateSide, keys: Sequence[bytes], values: Sequence[bytes]) -> Decoded:
    params = _params(flow, side)
    stamps, orders, texts = read_events(values)
    topic = side_name(flow, params)
    made = side.byte in events_of_groups(flow, _join(flow, side))
    records = [
        None if made else _record(topic, part, off) for _, _, part, off in orders.to_pylist()
    ]
    due = pc.add(stamps, params.ttl + _join(flow, side).delay)
    rows = entry_rows(key_texts(keys), records, stamps, due, s=texts)
    return decoded(rows, [("s", _named(params))])


def _drivers(
    flow: Flow, side: StateSide, keys: Sequence[bytes], values: Sequence[bytes]
) -> Decoded:
    join = _join(flow, side)
    suffixes = [split_entry(key)[2] for key in keys]
    identity, ttl = identity_of(flow, join), driving_behind(flow, side).ttl
    found = read_drivers(identity, ttl, -1, list(keys), suffixes, list(values))
    texts = [None] * len(keys) if side.kind == "keyless" else key_texts(keys)
    packed: dict[str, Any] = {"d": found["d"]}
    chosen = [("d", join.before)]
    if side.kind in ("waiting", "emitted"):
        members: list[list[Any]] = [
            json.loads(extra)[0] if extra else [] for extra in found["extra"].to_pylist()
        ]
        for n, i in enumerate(join.events):
            packed[f"s{i}"] = pa.array(
                [of[2 * n + 1] if of else None for of in members], pa.string()
            )
            chosen.append((f"s{i}", _named(join.sides[i])))
    more: list[tuple[Column, str]] = []
    if side.kind in ("kept", "keyless"):
        packed["flags"] = found["flags"]
        more = [(Column("outcome", "VARCHAR"), f"coalesce({class_sql('flags', '0')}, 'sent on')")]
    due = pc.add(found["due"], join.delay)
    rows = entry_rows(texts, _origins(flow, side, suffixes), found["ts"], due, **packed)
    return decoded(rows, chosen, more)


def _matches(
    flow: Flow, side: StateSide, keys: Sequence[bytes], values: Sequence[bytes]
) -> Decoded:
    join = _join(flow, side)
    suffixes = [split_entry(key)[2] for key in keys]
    width = identity_of(flow, join).width
    owners = [suffix[width] for suffix in suffixes]
    _, orders, texts = read_events(values)
    packed = {
        f"s{i}": pc.if_else(pa.array([owner == i for owner in owners], pa.bool_()), texts, None)
        for i in join.events
    }
    topics = [side_name(flow, join.sides[owner]) for owner in owners]
    made = events_of_groups(flow, join)
    matched = [
        topic if owner in made else _record(topic, part, off)
        for topic, owner, (_, _, part, off) in zip(topics, owners, orders.to_pylist(), strict=True)
    ]
    nothing = [None] * len(keys)
    rows = entry_rows(
        key_texts(keys),
        _origins(flow, side, suffixes),
        nothing,
        nothing,
        **packed,
        matched=pa.array(matched, pa.string()),
    )
    chosen = [(f"s{i}", _named(join.sides[i])) for i in join.events]
    return decoded(rows, chosen, [(Column("match", "VARCHAR"), "matched")])


def _accounts(
    flow: Flow, side: StateSide, keys: Sequence[bytes], values: Sequence[bytes]
) -> Decoded:
    found = [read_account(value) for value in values]
    stamps = pa.array([ts for _, _, ts in found], pa.int64())
    rows = entry_rows(
        [None] * len(keys),
        _origins(flow, side, [split_entry(key)[0][1:] for key in keys]),
        stamps,
        pc.add(stamps, driving_behind(flow, side).ttl),
        flags=pa.array([flags for flags, _, _ in found], pa.int64()),
        waits=pa.array([waits for _, waits, _ in found], pa.int64()),
    )
    outcome = (Column("outcome", "VARCHAR"), class_sql("flags", "waits"))
    return decoded(rows, [], [outcome, (Column("waits", "BIGINT"), "waits")])


def _due(flow: Flow, side: StateSide, keys: Sequence[bytes], values: Sequence[bytes]) -> Decoded:
    names = {each.byte: each.name for each in state_sides(flow) if each.step == side.step}
    found = of_index(keys, values)
    entries: list[bytes] = found.entries.to_pylist()
    ledger = isinstance(operator_of_state(flow, side.step), Ledger)
    nothing: list[str | None] = [None] * len(entries)
    rows = entry_rows(
        nothing if ledger else key_texts(entries),
        _origins(flow, side, [split_entry(entry)[0][1:] for entry in entries])
        if ledger
        else nothing,
        [None] * len(entries),
        pa.array(found.times),
        of=pa.array([names[entry[1]] for entry in entries], pa.string()),
    )
    return decoded(rows, [], [(Column("entry", "VARCHAR"), "of")])


def _origins(flow: Flow, side: StateSide, suffixes: Sequence[bytes]) -> list[str | None]:
    """Return the driving records that stand at the head of suffixes; None of rows of groups."""
    keeper = operator_of_state(flow, side.step)
    if isinstance(keeper, KeyedJoin) and identity_of(flow, keeper).of_groups:
        return [None] * len(suffixes)
    topic = source_of(flow, driving_behind(flow, side)).name
    return [_record(topic, *read_place(suffix)) for suffix in suffixes]


def _record(topic: str, partition: int, offset: int) -> str:
    return f"{topic}[{partition}]@{offset}"


def _params(flow: Flow, side: StateSide) -> SideParams:
    return _join(flow, side).sides[side.byte]


def _aggregate(flow: Flow, side: StateSide) -> Aggregate:
    found = operator_of_state(flow, side.step)
    assert isinstance(found, Aggregate)
    return found


def _runs(flow: Flow, side: StateSide) -> Runs:
    found = operator_of_state(flow, side.step)
    assert isinstance(found, Runs)
    return found


def _table(flow: Flow, side: StateSide) -> Materialize:
    found = operator_of_state(flow, side.step)
    assert isinstance(found, Materialize)
    return found


def _table_join(flow: Flow, side: StateSide) -> TableJoin:
    found = operator_of_state(flow, side.step)
    assert isinstance(found, TableJoin)
    return found


def _join(flow: Flow, side: StateSide) -> KeyedJoin:
    found = operator_of_state(flow, side.step)
    assert isinstance(found, KeyedJoin)
    return found


def _named(side: SideParams) -> tuple[Column, ...]:
    return tuple(Column(f"{side.alias}.{c.name}", c.type) for c in side.columns)
