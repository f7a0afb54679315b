"""Dead letters about rows of tables and groups: they name the row, as no single record made it."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import pyarrow as pa

from kaflow_engine.flow.chains.chain import Chain
from kaflow_engine.flow.flow import Flow
from kaflow_engine.flow.graph import source_of
from kaflow_engine.operators.handover import Changes
from kaflow_engine.operators.row_errors.bad_record import BadRecord
from kaflow_engine.operators.row_errors.dead_letters import letter_side, why
from kaflow_engine.operators.rows.reports import exchange_rows
from kaflow_engine.operators.rows.schemas import DEAD, LETTERS, NO_RECORD


def change_letters(
    flow: Flow,
    chain: Chain,
    changes: Changes,
    bad: Sequence[BadRecord],
    called: Callable[[bytes], str],
) -> pa.Table:
    """Return dead letters about rows on which readers of a table failed.

    Args:
        flow: What runs.
        chain: What the table belongs to.
        changes: What the readers were handed.
        bad: What they returned, by `rn` of the changes.
        called: Returns what people call the row of a `group`.

    Returns:
        Schema EXCHANGE.
    """
    groups = dict(
        zip(changes.rows["rn"].to_pylist(), changes.rows["group"].to_pylist(), strict=True)
    )
    numbers = pa.array([one.row for one in bad], pa.int64())
    known = changes.placed(pa.table({"rn": numbers}))
    names = [called(groups[one.row]) for one in bad]
    return row_letters(flow, chain, bad, names, ts=known["ts"], part=known["part"])


def row_letters(
    flow: Flow,
    chain: Chain,
    bad: Sequence[BadRecord],
    names: Sequence[str],
    *,
    ts: Any,
    part: Any,
) -> pa.Table:
    """Return dead letters, schema EXCHANGE: without the bytes of a record, the row in the message.

    Args:
        flow: What runs.
        chain: What the rows belong to.
        bad: Why, of each row.
        names: What people call each row.
        ts: Of each row, epoch milliseconds.
        part: The partition of each row.
    """
    topic = source_of(flow, chain.driving)
    reasons = [
        why(replace(one, message=f"{name}: {one.message}"))
        for one, name in zip(bad, names, strict=True)
    ]
    return exchange_rows(
        len(reasons),
        target=LETTERS,
        part=part,
        kind=DEAD,
        side=letter_side(flow, chain),
        t_phase=1,
        t_topic=topic.index,
        t_part=NO_RECORD,
        t_off=NO_RECORD,
        ts=ts,
        payload=pa.array(reasons, pa.string()),
    )
