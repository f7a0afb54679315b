"""Rows and changes on their way to tables and joins of tables, over the key of these."""

import pyarrow as pa
import pyarrow.compute as pc

from kaflow_engine.flow.flow import Flow
from kaflow_engine.flow.graph import target_of
from kaflow_engine.flow.tables import Materialize, TableJoin
from kaflow_engine.formats.pick import keep
from kaflow_engine.operators.handover import Changes, Leaving, Taken, position_of
from kaflow_engine.operators.outcomes.outcomes import EMITTED
from kaflow_engine.operators.output.before_after import before_after
from kaflow_engine.operators.row_errors.quarantine import bad_records, guarded
from kaflow_engine.operators.rows.layout import identity, keyed, packed_row
from kaflow_engine.operators.rows.partitioning import first_parts
from kaflow_engine.operators.rows.reports import exchange_rows
from kaflow_engine.operators.rows.row_text import columns_of, unpack
from kaflow_engine.operators.rows.schemas import READY, SIDE


def enter_table(flow: Flow, table: Materialize, leaving: Leaving) -> Taken:
    """Take append rows: the last one of a key is the row of the table; one without a key is
    dropped."""
    missing = " OR ".join(f"({sql}) IS NULL" for _, sql in table.keys) or "FALSE"
    chosen = f"{identity(table.keys)} AS k, {packed_row(table.columns)} AS payload"
    made = f"SELECT rn, {chosen} FROM ({leaving.typed}) WHERE NOT ({missing})"
    sql = f"SELECT rn, {keyed('k')} AS key, payload FROM ({made})"
    found, failed = guarded(sql, leaving.rows)
    kept = leaving.placed(found)
    rows = exchange_rows(
        kept.num_rows,
        target=target_of(flow, table),
        part=pa.array(first_parts(kept["key"].combine_chunks(), flow.partitions)),
        kind=READY,
        key=kept["key"],
        payload=kept["payload"],
        **position_of(kept),
    )
    return Taken(
        rows=rows, numbers=kept["rn"], passed=kept, bit=EMITTED, bad=tuple(bad_records(failed))
    )


def enter_table_changes(flow: Flow, table: Materialize, changes: Changes) -> Taken:
    """Take changes of a table that gets another key, in which NULL is a value like others.

    A row whose key changes leaves the old one and comes to the new one, with one trigger.
    """
    sides = before_after(changes)
    chosen = f"{identity(table.keys)} AS k, {packed_row(table.columns)} AS payload"
    made = f"SELECT rn, {chosen} FROM ({sides.typed})"
    found, failed = guarded(f"SELECT rn, {keyed('k')} AS key, payload FROM ({made})", sides.rows)
    moves = sides.moves(found, "key")
    return sides.taken(
        moves,
        moves.rows["key"].combine_chunks(),
        failed,
        partitions=flow.partitions,
        target=target_of(flow, table),
        kind=READY,
        payload=moves.coming("payload"),
        value=changes.rows["group"].take(moves.changes),
    )


def enter_table_join(flow: Flow, join: TableJoin, side: int, changes: Changes) -> Taken:
    """Take changes of one side of a join: 0 is the left one.

    A row whose join key changes leaves the old one and comes to the new one, with one trigger. One
    without a join key meets nothing: it travels only where its side is preserved, under its own
    identity.
    """
    mine = join.sides[side]
    sides = before_after(changes)
    payload = "row" if mine.columns == tuple(changes.columns) else packed_row(mine.columns)
    values = ", ".join(["rn", "row", *columns_of("l", changes.columns)])
    typed = f"SELECT {values} FROM (SELECT rn, row, {unpack('row')} AS l FROM rows)"
    kept = f" WHERE {mine.filter}" if mine.filter else ""
    chosen = f"{mine.key or 'NULL::VARCHAR'} AS k, {payload} AS payload"
    made = f"SELECT rn, {chosen} FROM ({typed}){kept}"
    found, failed = guarded(f"SELECT rn, {keyed('k')} AS key, payload FROM ({made})", sides.rows)
    if not mine.preserved:
        found = keep(found, pc.is_valid(found["key"]))
    moves = sides.moves(found, "key")
    meets = moves.rows["key"].combine_chunks()
    groups = changes.rows["group"].combine_chunks().take(moves.changes)
    return sides.taken(
        moves,
        pc.coalesce(meets, groups),
        failed,
        partitions=flow.partitions,
        target=target_of(flow, join),
        kind=SIDE,
        side=side,
        payload=moves.coming("payload"),
        value=groups,
        doomed=meets.is_null(),
    )
