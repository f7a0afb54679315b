"""Changes of a table on their way to a join that looks its rows up, over the key of the join."""

import pyarrow as pa
import pyarrow.compute as pc

from kaflow_engine.flow.flow import Flow
from kaflow_engine.flow.graph import target_of
from kaflow_engine.flow.operators import KeyedJoin
from kaflow_engine.operators.handover import Changes, Taken, position_of
from kaflow_engine.operators.outcomes.outcomes import EMITTED
from kaflow_engine.operators.row_errors.bad_record import BadRecord
from kaflow_engine.operators.row_errors.quarantine import guarded
from kaflow_engine.operators.rows.layout import keyed, packed
from kaflow_engine.operators.rows.partitioning import first_parts
from kaflow_engine.operators.rows.reports import exchange_rows
from kaflow_engine.operators.rows.row_text import columns_of, unpack
from kaflow_engine.operators.rows.schemas import SIDE


def enter_side(flow: Flow, join: KeyedJoin, index: int, changes: Changes) -> Taken:
    """Take changes of a table whose key is that of the join: a row that is gone deletes.

    A row that does not pass the filter of the side is none, nor one without a key.
    """
    side = join.sides[index]
    rows = _with_rows_before(changes.rows)
    values = ", ".join(["rn", "gone", *columns_of("l", changes.columns)])
    typed = f"SELECT {values} FROM (SELECT rn, new IS NULL AS gone, {unpack('row')} AS l FROM rows)"
    kept = f"NOT gone AND ({side.filter})" if side.filter else "NOT gone"
    payload = f"CASE WHEN {kept} THEN {packed(side.alias, side.columns)} END"
    sql = f"SELECT rn, {side.key} AS k, {payload} AS payload FROM ({typed})"
    made, failed = guarded(f"SELECT rn, {keyed('k')} AS key, payload FROM ({sql})", rows)
    made = changes.placed(made.filter(made["key"].is_valid()))
    found = exchange_rows(
        made.num_rows,
        target=target_of(flow, join),
        part=pa.chunked_array([first_parts(made["key"].combine_chunks(), flow.partitions)]),
        kind=SIDE,
        side=index,
        key=made["key"],
        payload=made["payload"],
        **position_of(made),
    )
    bad = (BadRecord(row=b.row, phase="sql", error=b.error, message=b.message) for b in failed)
    return Taken(
        rows=found,
        numbers=pa.chunked_array([], pa.int64()),
        passed=made,
        bit=EMITTED,
        bad=tuple(bad),
    )


def _with_rows_before(rows: pa.Table) -> pa.Table:
    """Add `row` to changes: the row after, or of one that is gone the row before."""
    known: dict[bytes, str | None] = {}
    found: list[str | None] = []
    columns = (rows[name].to_pylist() for name in ("group", "old", "new"))
    for group, old, new in zip(*columns, strict=True):
        before = known.get(group, old)
        found.append(before if new is None else new)
        known[group] = new
    return rows.append_column("row", pa.array(found, pa.string())).filter(
        pc.is_valid(pa.array(found, pa.string()))
    )
