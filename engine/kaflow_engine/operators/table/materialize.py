"""One table in one task: rows replace those before them, and changes leave."""

import json
from functools import partial
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from kaflow_engine.flow.chains.chain import chain_of
from kaflow_engine.flow.flow import Flow
from kaflow_engine.flow.graph import target_of
from kaflow_engine.flow.tables import Materialize
from kaflow_engine.formats.pick import keep
from kaflow_engine.operators.handover import HandChanges
from kaflow_engine.operators.keyed_state import StepState
from kaflow_engine.operators.rows.key_ranks import key_ranks
from kaflow_engine.operators.rows.reports import due_report, report_rows
from kaflow_engine.operators.rows.row_order import in_order
from kaflow_engine.operators.rows.schemas import NO_RECORD, OF_RECORDS
from kaflow_engine.operators.rows.task import BatchContext, Task
from kaflow_engine.operators.table.kept_rows import KeptRows, read_rows
from kaflow_engine.operators.table.leave import made_by, send_changes
from kaflow_engine.operators.table.versions import versions
from kaflow_engine.operators.watermark import END


def run_materialize(
    flow: Flow,
    table: Materialize,
    batch: BatchContext,
    rows: pa.Table,
    task: Task,
    hand_changes: HandChanges,
) -> pa.Table:
    """Run a table over the rows of one task.

    What other operators send because of the time comes first, then what is over here, then what
    records have made.

    Args:
        flow: What runs.
        table: Which operator of it.
        batch: Which batch.
        rows: Schema EXCHANGE; rows for others pass through untouched.
        task: The state before the batch; takes the changes.
        hand_changes: Takes the changes of rows.

    Returns:
        Schema EXCHANGE.
    """
    mine = pc.equal(rows["target"], target_of(flow, table))
    here = in_order(keep(rows, mine))
    kept = KeptRows(table, StepState(task, table.state, flow.partitions))
    timed = pc.less(here["t_phase"], OF_RECORDS)
    changes = [
        _taken(kept, keep(here, timed)),
        *_over(flow, table, batch, kept),
        _taken(kept, keep(here, pc.invert(timed))),
    ]
    called = partial(row_called, table)
    sent = send_changes(flow, table, table.columns, changes, hand_changes, called)
    due = kept.write()
    report = report_rows([{"due": due_report(chain_of(flow, table).number, due)}])
    return pa.concat_tables([rows.filter(pc.invert(mine)), *sent, report])


def _taken(kept: KeptRows, rows: pa.Table) -> pa.Table:
    """Take rows; returns the changes of the table."""
    if not rows.num_rows:
        return pa.table({})
    keys = rows["key"].combine_chunks().dictionary_encode()
    found = versions(rows, keys, kept.of(keys.dictionary))
    kept.put(found.keys, found.values, found.ts, found.new)
    changes = made_by(found.changes, rows)
    return changes.append_column("kept", changes["group"])


def _over(flow: Flow, table: Materialize, batch: BatchContext, kept: KeptRows) -> list[pa.Table]:
    """Delete what nothing changed for long; returns the changes, by when they fell due, then keys.

    The end of a bounded run is not a time at which anything falls due.
    """
    number = chain_of(flow, table).number
    watermark = batch.horizon(number)
    if not batch.may_be_due(number) or watermark >= END:
        return []
    over = [one for some in kept.over(watermark) for one in some]
    if not over:
        return []
    keys = [key for key, _, _ in over]
    ts, packed = read_rows(pa.array([value for _, value, _ in over], pa.binary()))
    times = np.array([at for _, _, at in over], np.int64) + 1
    count = len(over)
    constants = {
        "t_phase": 0,
        "t_role": 0,
        "t_topic": target_of(flow, table),
        "t_part": 0,
        "t_off": 0,
        "d_batch": batch.batch,
        "d_part": NO_RECORD,
        "d_off": NO_RECORD,
    }
    columns: dict[str, Any] = {
        **{name: pa.repeat(pa.scalar(v, pa.int64()), count) for name, v in constants.items()},
        "group": pa.array(keys, pa.binary()),
        "kept": pa.array(keys, pa.binary()),
        "old": packed,
        "new": pa.nulls(count, pa.string()),
        "ts": ts,
        "t_time": times,
        "d_time": times,
        "members": key_ranks([column for column, _ in table.keys], pa.array(keys, pa.binary())),
    }
    return [in_order(pa.table(columns))]


def row_called(table: Materialize, group: bytes) -> str:
    """Return what people call the row of a key."""
    values: list[str | None] = json.loads(group[1:])
    pairs = zip(table.keys, values, strict=True)
    shown = ", ".join(f"{key.name} = {'NULL' if v is None else v}" for (key, _), v in pairs)
    return f"row ({shown})"
