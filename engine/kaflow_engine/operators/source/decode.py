"""The records of one topic in one task: decoded, timed, and put in order."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from kaflow_engine.duck.quoting import identifier
from kaflow_engine.flow.sources import TopicParams
from kaflow_engine.formats.contract import Evidence, SchemaById, format_of
from kaflow_engine.formats.decoded import Decoded
from kaflow_engine.formats.pick import keep, pick
from kaflow_engine.formats.schema_changes import refuse_changes
from kaflow_engine.model.columns import Column
from kaflow_engine.model.letters import CHAIN, REDRIVE, UNREADABLE, read_mark
from kaflow_engine.model.record_columns import KEY
from kaflow_engine.operators.row_errors.bad_record import BadRecord
from kaflow_engine.operators.row_errors.quarantine import guarded
from kaflow_engine.operators.source.keys import read_keys
from kaflow_engine.operators.source.record_values import with_record_columns


@dataclass(frozen=True, slots=True, kw_only=True)
class Intake:
    """The records of one topic by one of its clocks; row i of `records` has `rn` i."""

    topic: TopicParams
    records: pa.Table
    rows: pa.Table
    """Good records: rn, $ts and $time (order time) in epoch milliseconds, and `c.<column>`."""
    tombstones: pa.Table
    """Null values of a dimension or table, which are no rows: rn, $ts, $time."""
    nulls: pa.Array
    """The `rn` of null values that are no rows, whatever the role."""
    bad: tuple[BadRecord, ...]
    """Records that cannot be read, by whatever clock."""
    untimed: tuple[BadRecord, ...]
    """Records that have no event time by this clock, or one too far ahead."""
    schema_by_id: SchemaById
    """Writer schemas, where they are registered."""


def addressed(records: pa.Table, pipeline: str) -> tuple[pa.Table, Mapping[int, str]]:
    """Return the records (schema RECORDS) without those that are redriven for other pipelines.

    Returns:
        The records, and by their place the names of the chains for which some are redriven.
    """
    headers = records.column("headers")
    if headers.null_count == len(headers) or not pc.any(_marked(headers)).as_py():
        return records, {}
    mine: list[int] = []
    meant: dict[int, str] = {}
    for place, row in enumerate(headers.to_pylist()):
        marks = [read_mark(h["value"] or b"")[1] for h in row or () if h["key"] == REDRIVE]
        names = [h["value"] for h in row or () if h["key"] == CHAIN and h["value"] is not None]
        if any(mark != pipeline for mark in marks):
            continue
        if marks and names:
            meant[len(mine)] = names[-1].decode(errors="replace")
        mine.append(place)
    return records.take(pa.array(mine, pa.int64())), meant


def _marked(headers: pa.ChunkedArray) -> pa.ChunkedArray:
    flat = pc.list_flatten(headers)
    return pc.equal(pc.struct_field(flat, "key"), REDRIVE)


def read_topic(
    topic: TopicParams,
    records: pa.Table,
    batch_time: int,
    schema_by_id: Callable[[int], str],
) -> tuple[Intake, ...]:
    """Decode the records of one topic once, and give each its event time and order time by every
    clock of the topic.

    Args:
        topic: Whose records they are.
        records: Schema RECORDS, each partition in offset order.
        batch_time: Epoch milliseconds.
        schema_by_id: Writer schemas, where they are registered.
    """
    values = records.column("value").combine_chunks()
    present = pc.indices_nonzero(values.is_valid())
    missing = pc.indices_nonzero(values.is_null())
    decoded = _decode(topic, pick(values, present), schema_by_id)
    places = pick(present, decoded.good).cast(pa.int64())
    bad = [
        BadRecord(row=present[b.row].as_py(), phase="decode", error=b.error, message=b.message)
        for b in decoded.bad
    ]
    unreadable = _unreadable(records, missing) if topic.connector else []
    missing = _without(missing, unreadable)
    rows = decoded.table.rename_columns([f"c.{n}" for n in decoded.table.column_names])
    rows = rows.append_column("rn", places)
    nulls = pa.table({"rn": missing.cast(pa.int64())})
    nulls = nulls.append_column("$ts", records.column("timestamp").take(nulls.column("rn")))
    limit = batch_time + topic.max_future
    values_read = _Read(records=records, rows=rows, nulls=nulls, bad=(*bad, *unreadable))
    return tuple(_timed_by(each, values_read, limit, schema_by_id) for each in topic.by_clock)


def _unreadable(records: pa.Table, missing: pa.Array) -> list[BadRecord]:
    """Return the records that stand for what a source cannot read, of those without a value."""
    said = records.column("headers").take(missing).to_pylist()
    return [
        BadRecord(row=row, phase="read", error="Unreadable", message=why[-1])
        for row, headers in zip(missing.to_pylist(), said, strict=True)
        if (why := [h["value"].decode() for h in headers or () if h["key"] == UNREADABLE])
    ]


@dataclass(frozen=True, slots=True, kw_only=True)
class _Read:
    """The records of one topic, decoded."""

    records: pa.Table
    rows: pa.Table
    """Those with a value: rn, and `c.<column>`."""
    nulls: pa.Table
    """The others: rn, and $ts, which is their Kafka timestamp."""
    bad: tuple[BadRecord, ...]


def _timed_by(
    topic: TopicParams, read: _Read, limit: int, schema_by_id: Callable[[int], str]
) -> Intake:
    """Return records by the clock of a topic.

    Args:
        topic: By that clock.
        read: Its records.
        limit: The greatest event time that one may have, epoch milliseconds.
        schema_by_id: Writer schemas, where they are registered.
    """
    records, missing = read.records, read.nulls["rn"].combine_chunks()
    rows, untimed = _timed(topic, read.rows, records, schema_by_id)
    deletes = topic.is_kept and topic.on_null != "row"
    tombstones = read.nulls if deletes else read.nulls.slice(0, 0)
    if topic.on_null == "row":
        rows, missing = _with_nulls(rows, read.nulls), missing.slice(0, 0)
    rows, early = _future(rows, limit)
    rows, unread = with_record_columns(topic, rows, records, schema_by_id)
    tombstones, early_tombstones = _future(tombstones, limit)
    return Intake(
        topic=topic,
        records=records,
        rows=_ordered(rows, tombstones, records),
        tombstones=_ordered(tombstones, rows, records),
        nulls=_without(missing, early_tombstones),
        bad=(*read.bad, *unread),
        untimed=(*untimed, *early, *early_tombstones),
        schema_by_id=schema_by_id,
    )


def _without(numbers: pa.Array, bad: Sequence[BadRecord]) -> pa.Array:
    if not bad:
        return numbers
    gone = pa.array([one.row for one in bad], numbers.type)
    return numbers.filter(pc.invert(pc.is_in(numbers, gone)))


def _decode(topic: TopicParams, values: pa.Array, schema_by_id: Callable[[int], str]) -> Decoded:
    return format_of(topic.format).decode(values, topic.columns, _watched(topic, schema_by_id))


def _watched(topic: TopicParams, schema_by_id: Callable[[int], str]) -> Callable[[int], str]:
    """Under `on_schema_change: fail`, stop at a schema with other fields than at the start."""
    known = topic.schema_id
    if known is None:
        return schema_by_id

    def fields(schema_id: int) -> Sequence[Column]:
        evidence = Evidence.of_schema(schema_by_id(schema_id))
        return format_of(topic.format).columns(evidence) or ()

    def checked(schema_id: int) -> str:
        if schema_id != known:
            refuse_changes(topic.name, (known, fields(known)), (schema_id, fields(schema_id)))
        return schema_by_id(schema_id)

    return checked


def _timed(
    topic: TopicParams,
    rows: pa.Table,
    records: pa.Table,
    schema_by_id: Callable[[int], str],
) -> tuple[pa.Table, list[BadRecord]]:
    """Add `$ts`; records without an event time are bad."""
    if topic.event_time is None:
        stamps = pick(records.column("timestamp"), rows.column("rn"))
        return rows.append_column("$ts", stamps), []
    columns, key = rows.column_names, f"c.{KEY}"
    if identifier(key) in topic.event_time:
        keys = pick(records.column("key"), rows.column("rn"))
        rows = rows.append_column(key, read_keys(topic, keys, schema_by_id).values)
    found, failed = guarded(f'SELECT *, {topic.event_time} AS "$ts" FROM rows', rows)
    found = found.select([*columns, "$ts"])
    bad = [
        BadRecord(row=b.row, phase="event_time", error=b.error, message=b.message) for b in failed
    ]
    known = found.column("$ts").is_valid()
    bad += [
        BadRecord(
            row=row, phase="event_time", error="MissingEventTime", message="the event time is null"
        )
        for row in found.filter(pc.invert(known)).column("rn").to_pylist()
    ]
    return keep(found, known), bad


def _with_nulls(rows: pa.Table, nulls: pa.Table) -> pa.Table:
    """Add null values as rows of NULLs at their places; they have their Kafka timestamps."""
    if not nulls.num_rows:
        return rows
    whole = pa.concat_tables([rows, nulls], promote_options="default")
    return whole.take(pc.sort_indices(whole["rn"]))


def _future(rows: pa.Table, limit: int) -> tuple[pa.Table, list[BadRecord]]:
    early = pc.greater(rows.column("$ts"), pa.scalar(limit, pa.int64()))
    if not pc.any(early).as_py():
        return rows, []
    bad = [
        BadRecord(
            row=row,
            phase="event_time",
            error="FutureTimestamp",
            message=f"the event time {stamp} lies more than max_future after the batch time",
        )
        for row, stamp in zip(
            rows.filter(early).column("rn").to_pylist(),
            rows.filter(early).column("$ts").to_pylist(),
            strict=True,
        )
    ]
    return rows.filter(pc.invert(early)), bad


def _ordered(rows: pa.Table, others: pa.Table, records: pa.Table) -> pa.Table:
    """Add `$time`, the greatest `$ts` so far in the record's partition."""
    numbers = np.concatenate([_numbers(rows, "rn"), _numbers(others, "rn")])
    stamps = np.concatenate([_numbers(rows, "$ts"), _numbers(others, "$ts")])
    partitions = _numbers(records, "partition")[numbers]
    order = np.lexsort((numbers, partitions))
    times = np.empty_like(stamps)
    for place in np.split(order, np.flatnonzero(np.diff(partitions[order])) + 1):
        times[place] = np.maximum.accumulate(stamps[place])
    return rows.append_column("$time", pa.array(times[: rows.num_rows], pa.int64()))


def _numbers(table: pa.Table, name: str) -> np.ndarray[tuple[int], np.dtype[np.int64]]:
    return table.column(name).to_numpy().astype(np.int64)
