"""Records that are taken out alone, with their original bytes and the reason."""

import json
from collections.abc import Sequence

import pyarrow as pa

from kaflow_engine.duck.queries import query
from kaflow_engine.errors import SourceError
from kaflow_engine.flow.chains.chain import Chain, chains
from kaflow_engine.flow.flow import Flow
from kaflow_engine.flow.graph import target_of
from kaflow_engine.flow.sources import CLOCK, TopicParams
from kaflow_engine.operators.row_errors.bad_record import BadRecord
from kaflow_engine.operators.rows.partitioning import record_part
from kaflow_engine.operators.rows.reports import exchange_rows
from kaflow_engine.operators.rows.schemas import DEAD, LETTERS

RAW = (
    'CAST(to_json(struct_pack(k := to_base64("$key"), v := to_base64("$value"), '
    't := "$timestamp", h := list_transform("$headers", '
    "lambda x: [x.key, to_base64(x.value)]))) AS VARCHAR)"
)
"""The original bytes of a record as JSON text."""
_RAW_COLUMNS = [f'{name} AS "${name}"' for name in ("key", "value", "timestamp", "headers")]


def why(bad: BadRecord) -> str:
    """Return the reason for a dead letter as JSON text."""
    reason = {"phase": bad.phase, "error": bad.error, "message": bad.message}
    return json.dumps(reason)


def expiry_letter(ttl: int) -> BadRecord:
    """Return why a record that expired becomes a dead letter."""
    message = f"not complete within {ttl} ms"
    return BadRecord(row=0, phase="expiry", error="Expired", message=message)


def letter_side(flow: Flow, chain: Chain) -> int | None:
    """Return the `side` of dead letters about a chain; None where it is the only one."""
    return target_of(flow, chain.head) if len(chains(flow)) > 1 else None


def clock_letters_name(topic: TopicParams) -> str:
    """Return what dead letters call a topic by one of its clocks, about which they are: no output
    has such a name."""
    return f"{CLOCK}{topic.clock_name}"


def source_letters(
    flow: Flow,
    topic: TopicParams,
    records: pa.Table,
    bad: Sequence[BadRecord],
    sides: Sequence[int | None],
) -> pa.Table:
    """Build dead letters of a topic's records.

    Args:
        flow: Whose dead letters they are.
        topic: Where the records come from.
        records: Schema RECORDS, one for each of `bad`.
        bad: Why.
        sides: What `letter_side` says of each, or the target of the Decode by whose clock alone it
            fails; None: it is about all that read the topic.

    Returns:
        Schema EXCHANGE.
    """
    raw = query(f"SELECT {RAW} AS raw FROM (SELECT {', '.join(_RAW_COLUMNS)} FROM rows)", records)
    partition = records.column("partition").cast(pa.int64())
    return exchange_rows(
        len(bad),
        target=LETTERS,
        part=record_part(topic.index, partition, flow),
        kind=DEAD,
        side=pa.array(sides, pa.int32()),
        t_phase=1,
        t_topic=topic.index,
        t_part=partition,
        t_off=records.column("offset"),
        ts=records.column("timestamp"),
        raw=raw.column("raw"),
        payload=pa.array([why(record) for record in bad], pa.string()),
    )


class RecordRefused(SourceError):
    """A bad record in a topic with `on_error: fail`; it is as bad when it is read again."""


def refusal(topic: TopicParams, partition: int, offset: int, bad: BadRecord) -> RecordRefused:
    """Return the error that stops a pipeline at the first bad record (`on_error: fail`)."""
    return RecordRefused(
        f"bad record in topic '{topic.name}', partition {partition}, "
        f"offset {offset}: {bad.phase}: {bad.message}",
        hint="fix or skip the record, or set on_error: dead_letter for the topic",
    )
