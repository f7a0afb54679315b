"""Changes of a table on their way to sinks: what is selected of the row before and after."""

from collections.abc import Sequence
from dataclasses import dataclass

import pyarrow as pa

from kaflow_engine.flow.flow import Flow
from kaflow_engine.flow.graph import taker_of, target_of, throttle_of
from kaflow_engine.flow.operators import Gathers, Project, TakesRows
from kaflow_engine.flow.sinks import ConnectorSink, Sink, TopicSink
from kaflow_engine.operators.handover import Changes, Taken, position_of
from kaflow_engine.operators.outcomes.outcomes import EMITTED
from kaflow_engine.operators.output.before_after import BeforeAfter, Moves, before_after
from kaflow_engine.operators.output.encode import encode_rows
from kaflow_engine.operators.output.operation_headers import with_operations
from kaflow_engine.operators.output.project import projected
from kaflow_engine.operators.output.unnest import PLACES
from kaflow_engine.operators.row_errors.bad_record import BadRecord
from kaflow_engine.operators.rows.partitioning import output_parts
from kaflow_engine.operators.rows.reports import exchange_rows
from kaflow_engine.operators.rows.schemas import CLOSED, EXCHANGE, READY


@dataclass(frozen=True, slots=True, kw_only=True)
class _Shown:
    """What one reader makes of changes."""

    project: Project
    sink: Sink
    moves: Moves
    bad: Sequence[BadRecord]
    """By changes."""


def run_changes(flow: Flow, readers: Sequence[TakesRows], changes: Changes) -> Taken:
    """Take changes: what differs for a reader leaves as the row it is now, or as a delete.

    A reader shows nothing of a row on which its SQL fails.
    """
    sides = before_after(changes)
    shown: list[_Shown] = []
    for reader in readers:
        assert isinstance(reader, Project)
        sink = taker_of(flow, reader)
        assert not isinstance(sink, Gathers)
        shown.append(_shown(reader, sink, sides))
    bad: dict[int, BadRecord] = {}
    for one in (one for each in shown for one in each.bad):
        bad.setdefault(one.row, one)
    rows = [_addressed(flow, each, changes) for each in shown]
    passed = pa.chunked_array([each.moves.numbers for each in shown], pa.int64()).unique()
    return Taken(
        rows=pa.concat_tables([EXCHANGE.empty_table(), *rows]),
        numbers=pa.chunked_array([], pa.int64()),
        passed=changes.placed(pa.table({"rn": passed})),
        bit=EMITTED,
        bad=tuple(bad.values()),
    )


def _shown(reader: Project, sink: Sink, sides: BeforeAfter) -> _Shown:
    columns = [column for column, _ in reader.columns]
    places = PLACES if reader.unnests else None
    done = encode_rows(sink, columns, projected(reader, sides.typed), sides.rows, places)
    parted, rows = sides.unnested(done.rows, len(reader.unnests)) if places else (sides, done.rows)
    return _Shown(
        project=reader,
        sink=sink,
        moves=parted.every(rows)
        if sides.changes.because == "closed"
        else parted.moves(rows, "out_key", coalesced=_is_coalesced(sink)),
        bad=sides.bad_of(done.bad),
    )


def _is_coalesced(sink: Sink) -> bool:
    return isinstance(sink, TopicSink | ConnectorSink) and sink.coalesced


def _addressed(flow: Flow, shown: _Shown, changes: Changes) -> pa.Table:
    """Return rows for the sink: a value of NULL deletes what was under the key."""
    moves = shown.moves
    made = pa.table(
        {
            "rn": moves.numbers,
            "out_key": moves.rows["out_key"],
            "value": moves.coming("value"),
            "headers": moves.coming("headers"),
        }
    )
    if isinstance(shown.sink, TopicSink) and shown.sink.operation is not None:
        made = with_operations(shown.sink.operation, moves)
    kept = changes.placed(made)
    throttle = throttle_of(flow, shown.sink)
    travels = shown.sink.exchange or throttle is not None
    part = output_parts(kept["out_key"], flow.partitions) if travels else kept["part"]
    return exchange_rows(
        kept.num_rows,
        target=target_of(flow, throttle or shown.sink),
        part=part,
        kind=CLOSED if changes.because == "closed" else READY,
        side=target_of(flow, shown.project),
        key=kept["out_key"],
        value=kept["value"],
        payload=kept["headers"],
        **position_of(kept),
    )
