"""The end of a task: finished rows and dead letters, in order, to the sink."""

import base64
import json
from collections.abc import Sequence
from typing import Any, assert_never

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from kaflow_engine.flow.chains.chain import chains
from kaflow_engine.flow.chains.gathered import groups_before
from kaflow_engine.flow.chains.names import chain_name
from kaflow_engine.flow.decodes import decoded_by
from kaflow_engine.flow.flow import Backfill, Flow
from kaflow_engine.flow.graph import projections, projects_of, target_of
from kaflow_engine.flow.operators import Decode
from kaflow_engine.flow.records import DEAD_LETTER, OUTPUT, ROW, TABLE_ROW
from kaflow_engine.flow.sinks import ConnectorSink, Sink, TableSink, TopicSink
from kaflow_engine.formats.pick import keep, pick
from kaflow_engine.model.letters import ABOUT, BACKFILL, CHAIN, PREFIX, REDRIVE, read_mark
from kaflow_engine.operators.output.operation_headers import as_begun
from kaflow_engine.operators.output.record_headers import headers_of
from kaflow_engine.operators.row_errors.dead_letters import clock_letters_name
from kaflow_engine.operators.rows.row_order import order_of
from kaflow_engine.operators.rows.schemas import DEAD, NO_RECORD, ORIGIN, READY, REPORT, TRIGGER
from kaflow_engine.operators.rows.task import BatchContext, Task

_ORDER = (*TRIGGER, "side", *ORIGIN)
"""What one record triggers leaves a union branch by branch."""
_LETTER = ("t_topic", "t_part", "t_off", "side")
_NO_CHAIN = -1
_SENT = ["part", "target", "key", "value", "payload", "ts", "d_part", "d_off"]
_WHY = ("phase", "error", "message")
_HEADERS = [f"{PREFIX}{name}" for name in ABOUT]


def run_deliver(flow: Flow, batch: BatchContext, rows: pa.Table, task: Task) -> pa.Table:
    """Hand what is ready to the sink and return the reports.

    Args:
        flow: What runs.
        batch: Which batch.
        rows: Schema EXCHANGE, kinds READY, DEAD and REPORT.
        task: Takes rows of schema OUTPUT, those of one key in the order of section 1.
    """
    kinds = rows["kind"]
    reports = rows.filter(pc.equal(kinds, REPORT))
    ready = keep(rows, pc.equal(kinds, READY))
    dead = rows.filter(pc.equal(kinds, DEAD))
    if flow.backfill is not None:
        ready = keep(ready, pc.or_(_within(ready["ts"], flow.backfill), _of_windows(flow, ready)))
        without = pc.equal(dead["t_off"], NO_RECORD)
        dead = keep(dead, pc.or_(_within(_kafka_times(dead), flow.backfill), without))
    found: list[pa.Table] = []
    if ready.num_rows:
        found.append(_output(flow, batch, ready))
    if dead.num_rows:
        found.append(letters_of(flow, dead))
    if found:
        task.deliver(pa.concat_tables(found))
    return reports


def _by_branch(flow: Flow, sides: pa.ChunkedArray) -> pa.Array:
    """Return the places of rows among the outputs and the branches of their unions."""
    places = np.zeros(len(flow.operators), np.int64)
    for place, project in enumerate(e for sink in flow.sinks for e in projects_of(flow, sink)):
        places[target_of(flow, project)] = place
    return pa.array(places[sides.to_numpy()])


def _output(flow: Flow, batch: BatchContext, ready: pa.Table) -> pa.Table:
    at = ready.column_names.index("side")
    ready = ready.set_column(at, "side", _by_branch(flow, ready["side"]))
    # one place: as they were sent
    ordered = pick(ready.select(_SENT), pa.array(order_of(ready, [*_ORDER, "members"])))
    if batch.begins:
        ordered = _begun_once(flow, batch, ordered)
    count = ordered.num_rows
    columns: dict[str, Any] = {
        "slot": ordered["part"],
        "topic": _of_sinks(flow, ordered["target"], [sink.target for sink in flow.sinks]),
        "key": ordered["key"],
        "value": ordered["value"],
        "timestamp": ordered["ts"],
        "headers": _headers(flow.backfill, ordered["payload"]),
        "partition": pa.nulls(count, pa.int32()),
        "kind": _of_sinks(flow, ordered["target"], [_kind(sink) for sink in flow.sinks]),
        "source_partition": ordered["d_part"],
        "source_offset": ordered["d_off"],
    }
    return pa.Table.from_pydict(columns).cast(OUTPUT)


def _begun_once(flow: Flow, batch: BatchContext, rows: pa.Table) -> pa.Table:
    """Return rows of which a sink that begins, and coalesces, gets one for each key.

    It takes the rows that a table had and what the batch makes of them; nothing was sent before, so
    that nothing is deleted.
    """
    names = {each.reader.partition("#")[0] for each in batch.begins}
    sinks = [
        sink
        for sink in flow.sinks
        if isinstance(sink, TopicSink | ConnectorSink) and sink.coalesced and sink.id in names
    ]
    targets = [target_of(flow, sink) for sink in sinks]
    mine = pc.is_in(rows["target"], pa.array(targets, pa.int32())).to_pylist()
    for sink, target in zip(sinks, targets, strict=True):
        if isinstance(sink, TopicSink) and sink.operation is not None:
            rows = as_begun(sink.operation, pc.equal(rows["target"], target), rows)
    keys = zip(rows["target"].to_pylist(), rows["key"].to_pylist(), strict=True)
    last = {key: place for place, key in enumerate(keys)}
    wanted = {place for place in last.values() if rows["value"][place].is_valid}
    return keep(rows, pa.array([not own or n in wanted for n, own in enumerate(mine)], pa.bool_()))


def _of_sinks(flow: Flow, targets: pa.ChunkedArray, values: Sequence[Any]) -> Any:
    """Return what belongs to the sink of each row."""
    if len(values) == 1:
        return pa.repeat(values[0], len(targets))
    return pa.array(values).take(pc.subtract(targets, target_of(flow, flow.sinks[0])))


def _kind(sink: Sink) -> int:
    match sink:
        case TopicSink():
            return ROW
        case TableSink() | ConnectorSink():
            return TABLE_ROW
        case _:
            assert_never(sink)


def _within(times: pa.Array | pa.ChunkedArray, wanted: Backfill) -> Any:
    return pc.and_(pc.greater_equal(times, wanted.start), pc.less(times, wanted.end))


def _of_windows(flow: Flow, ready: pa.Table) -> Any:
    """Tell which rows are those of windows, which a backfill chooses by their start."""
    behind = [each for each in projections(flow) if groups_before(flow, each)]
    return pc.is_in(ready["side"], pa.array([target_of(flow, each) for each in behind], pa.int32()))


def _kafka_times(dead: pa.Table) -> pa.Array:
    """Return the Kafka timestamps of dead letters: many of them have no event time."""
    times = [json.loads(raw).get("t") if raw else None for raw in dead["raw"].to_pylist()]
    return pc.fill_null(pa.array(times, pa.int64()), -1)


def _headers(backfill: Backfill | None, texts: pa.ChunkedArray) -> pa.ChunkedArray | pa.Array:
    """Return the headers of rows: those that they set, and behind them that of a backfill."""
    kind = OUTPUT.field("headers").type
    found = headers_of(texts, kind)
    if backfill is None:
        return found
    mark = {"key": BACKFILL, "value": str(backfill).encode()}
    if found.null_count == len(found):
        return pa.repeat(pa.scalar([mark], kind), len(found))
    return pa.array([[*(pairs or ()), mark] for pairs in found.to_pylist()], kind)


def letters_of(flow: Flow, dead: pa.Table) -> pa.Table:
    """Return dead letters, schema EXCHANGE, as records for their topic, schema OUTPUT."""
    at = dead.column_names.index("side")
    dead = dead.set_column(at, "side", pc.fill_null(dead["side"], _NO_CHAIN))
    places = pa.array(order_of(dead, _LETTER))
    rows = dead.select([*_LETTER, "part", "raw", "payload"]).take(places)
    about = {target_of(flow, chain.head): chain_name(flow, chain) for chain in chains(flow)} | {
        target_of(flow, each): clock_letters_name(decoded_by(flow, each))
        for each in flow.operators
        if isinstance(each, Decode)
    }
    originals: list[dict[str, Any]] = [
        json.loads(raw) if raw else {} for raw in rows["raw"].to_pylist()
    ]
    mark = [] if flow.backfill is None else [(BACKFILL, str(flow.backfill).encode())]
    names: list[str] = []
    values: list[bytes | None] = []
    starts = [0]
    dead_rows: zip[tuple[int, int, int, int, Any]] = zip(
        *(rows[name].to_pylist() for name in (*_LETTER, "payload")), strict=True
    )
    for original, (topic, partition, offset, side, payload) in zip(
        originals, dead_rows, strict=True
    ):
        attempt = 1
        for name, value in original.get("h") or ():
            names.append(name)
            values.append(_bytes(value))
            if name == REDRIVE:
                attempt = read_mark(values[-1] or b"")[0]
        why: dict[str, Any] = json.loads(payload)
        names += _HEADERS
        values += [
            str(value).encode()
            for value in (
                flow.name,
                flow.sources[topic].name,
                partition,
                offset,
                original.get("t"),
                *(why[part] for part in _WHY),
                attempt,
            )
        ]
        chain = [] if side == _NO_CHAIN else [(CHAIN, about[side].encode())]
        for name, value in (*chain, *mark):
            names.append(name)
            values.append(value)
        starts.append(len(names))
    kind = OUTPUT.field("headers").type
    pairs = [pa.array(names, pa.string()), pa.array(values, pa.binary())]
    flat = pa.StructArray.from_arrays(pairs, fields=list(kind.value_type))
    count = rows.num_rows
    columns: dict[str, Any] = {
        "slot": rows["part"],
        "topic": pa.repeat(pa.scalar(flow.dead_letter_topic, pa.string()), count),
        "key": pa.array([_bytes(one.get("k")) for one in originals], pa.binary()),
        "value": pa.array([_bytes(one.get("v")) for one in originals], pa.binary()),
        "timestamp": pa.array([one.get("t") or 0 for one in originals], pa.int64()),
        "headers": pa.ListArray.from_arrays(pa.array(starts, pa.int32()), flat, type=kind),
        "partition": pa.nulls(count, pa.int32()),
        "kind": pa.repeat(DEAD_LETTER, count),
        "source_partition": pa.nulls(count, pa.int32()),
        "source_offset": pa.nulls(count, pa.int64()),
    }
    return pa.Table.from_pydict(columns).cast(OUTPUT)


def _bytes(text: str | None) -> bytes | None:
    return None if text is None else base64.b64decode(text)
