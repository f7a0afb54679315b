"""Rows and changes on their way to tables and joins of tables, over the key of these."""

from collections.abc import Sequence

import pyarrow as pa
import pyarrow.compute as pc

from kaflow_engine.flow.flow import Flow
from kaflow_engine.flow.graph import target_of
from kaflow_engine.flow.tables import Materialize, TableJoin
from kaflow_engine.formats.pick import keep
from kaflow_engine.operators.handover import Changes, Leaving, Taken, position_of
from kaflow_engine.operators.outcomes.outcomes import EMITTED
from kaflow_engine.operators.output.before_after import BeforeAfter, before_after
from kaflow_engine.operators.row_errors.bad_record import BadRecord
from kaflow_engine.operators.row_errors.quarantine import BadRow, guarded
from kaflow_engine.operators.rows.layout import identity, keyed, packed_row
from kaflow_engine.operators.rows.partitioning import first_parts
from kaflow_engine.operators.rows.reports import exchange_rows
from kaflow_engine.operators.rows.row_text import columns_of, unpack
from kaflow_engine.operators.rows.schemas import READY, SIDE

_Sent = tuple[int, bytes, str | None, bool, bytes]
"""What travels: the change, the key, the row (None deletes), whether it meets nothing, and the
identity of the row."""


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
    bad = tuple(_bad(failed))
    return Taken(rows=rows, numbers=kept["rn"], passed=kept, bit=EMITTED, bad=bad)


def enter_table_changes(flow: Flow, table: Materialize, changes: Changes) -> Taken:
    """Take changes of a table that gets another key, in which NULL is a value like others.

    A row whose key changes leaves the old one and comes to the new one, with one trigger.
    """
    sides = before_after(changes)
    chosen = f"{identity(table.keys)} AS k, {packed_row(table.columns)} AS payload"
    made = f"SELECT rn, {chosen} FROM ({sides.typed})"
    found, failed = guarded(f"SELECT rn, {keyed('k')} AS key, payload FROM ({made})", sides.rows)
    rows = {
        number: (key, payload)
        for number, key, payload in zip(
            *(found[name].to_pylist() for name in ("rn", "key", "payload")), strict=True
        )
    }
    sent: list[_Sent] = []
    for number, group, before, now in sides.seen(rows):
        if before is not None and (now is None or now[0] != before[0]):
            sent.append((number, before[0], None, False, group))
        if now is not None and now != before:
            sent.append((number, *now, False, group))
    return _taken(flow, changes, sides, failed, sent, target=target_of(flow, table), kind=READY)


def enter_table_join(flow: Flow, join: TableJoin, side: int, changes: Changes) -> Taken:
    """Take changes of one side of a join: 0 is the left one.

    A row whose join key changes leaves the old one and comes to the new one, with one trigger. One
    without a join key meets nothing: it travels only where its side is preserved.
    """
    mine = join.sides[side]
    sides = before_after(changes)
    payload = "row" if mine.columns == tuple(changes.columns) else packed_row(mine.columns)
    values = ", ".join(["rn", "row", *columns_of("l", changes.columns)])
    typed = f"SELECT {values} FROM (SELECT rn, row, {unpack('row')} AS l FROM rows)"
    made = f"SELECT rn, {mine.key or 'NULL::VARCHAR'} AS k, {payload} AS payload FROM ({typed})"
    found, failed = guarded(f"SELECT rn, {keyed('k')} AS key, payload FROM ({made})", sides.rows)
    if not mine.preserved:
        found = keep(found, pc.is_valid(found["key"]))
    rows = {
        number: (key, payload)
        for number, key, payload in zip(
            *(found[name].to_pylist() for name in ("rn", "key", "payload")), strict=True
        )
    }
    sent: list[_Sent] = []
    for number, group, before, now in sides.seen(rows):
        if before is not None and (now is None or now[0] != before[0]):
            sent.append((number, *_meeting(before[0], group, None)))
        if now is not None and now != before:
            sent.append((number, *_meeting(now[0], group, now[1])))
    return _taken(
        flow, changes, sides, failed, sent, target=target_of(flow, join), kind=SIDE, side=side
    )


def _meeting(
    key: bytes | None, group: bytes, payload: str | None
) -> tuple[bytes, str | None, bool, bytes]:
    """Return key, row, whether it meets nothing, and identity of a row on its way to a join."""
    return (group, payload, True, group) if key is None else (key, payload, False, group)


def _taken(
    flow: Flow,
    changes: Changes,
    sides: BeforeAfter,
    failed: Sequence[BadRow],
    sent: Sequence[_Sent],
    *,
    target: int,
    kind: int,
    side: int | None = None,
) -> Taken:
    numbers, keys, payloads, alone, groups = zip(*sent, strict=True) if sent else ((),) * 5
    placed = changes.placed(pa.table({"rn": pa.array(numbers, pa.int64())}))
    key = pa.array(keys, pa.binary())
    rows = exchange_rows(
        len(numbers),
        target=target,
        part=pa.array(first_parts(key, flow.partitions)),
        kind=kind,
        side=side,
        key=key,
        payload=pa.array(payloads, pa.string()),
        value=pa.array(groups, pa.binary()),
        doomed=pa.array(alone, pa.bool_()),
        **position_of(placed),
    )
    return Taken(
        rows=rows,
        numbers=pa.chunked_array([], pa.int64()),
        passed=placed,
        bit=EMITTED,
        bad=tuple(sides.bad_of(_bad(failed))),
    )


def _bad(failed: Sequence[BadRow]) -> list[BadRecord]:
    return [BadRecord(row=b.row, phase="sql", error=b.error, message=b.message) for b in failed]
