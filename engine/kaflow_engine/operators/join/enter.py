"""Rows of one join on their way to the next, over its key."""

from kaflow_engine.flow.flow import Flow
from kaflow_engine.flow.graph import target_of
from kaflow_engine.flow.operators import KeyedJoin
from kaflow_engine.operators.handover import Leaving, Taken, position_of
from kaflow_engine.operators.outcomes.outcomes import EMITTED, LEFT
from kaflow_engine.operators.row_errors.quarantine import bad_records, guarded
from kaflow_engine.operators.rows.layout import keyed
from kaflow_engine.operators.rows.partitioning import keyless_parts, parts_of
from kaflow_engine.operators.rows.reports import exchange_rows
from kaflow_engine.operators.rows.schemas import DRIVING


def enter_join(flow: Flow, join: KeyedJoin, leaving: Leaving) -> Taken:
    """Take rows: compute their key, and pack the columns that travel."""
    sql = (
        f"SELECT p.rn, p.payload, {keyed('k.k')} AS key FROM ({leaving.packed(join.before)}) p "
        f"JOIN (SELECT rn, {join.rows.key} AS k FROM ({leaving.typed})) k ON k.rn = p.rn"
    )
    found, failed = guarded(sql, leaving.rows)
    kept = leaving.placed(found)
    keyless = keyless_parts(flow, join, kept["d_part"], kept["d_off"])
    position = position_of(kept)
    if join.chain is not None:  # their records are accounted for
        position |= {"counted": False, "forced": False}
    rows = exchange_rows(
        kept.num_rows,
        target=target_of(flow, join),
        part=parts_of(kept["key"], keyless, flow.partitions),
        kind=DRIVING,
        key=kept["key"],
        payload=kept["payload"],
        doomed=False,
        **position,
    )
    return Taken(
        rows=rows,
        numbers=kept["rn"],
        passed=kept,
        bit=LEFT if join.chain is None else EMITTED,
        bad=tuple(bad_records(failed)),
    )
