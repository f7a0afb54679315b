"""Rows on their way to a join as one of its sides, over its key: changes of a table that it looks
up, and rows of groups, which are events."""

from collections.abc import Sequence

import pyarrow as pa
import pyarrow.compute as pc

from kaflow_engine.duck.quoting import identifier
from kaflow_engine.flow.flow import Flow
from kaflow_engine.flow.graph import target_of
from kaflow_engine.flow.operators import KeyedJoin
from kaflow_engine.formats.pick import keep
from kaflow_engine.model.columns import Column
from kaflow_engine.operators.handover import Changes, Leaving, Taken, position_of
from kaflow_engine.operators.outcomes.outcomes import EMITTED
from kaflow_engine.operators.output.before_after import before_after
from kaflow_engine.operators.row_errors.quarantine import bad_records, guarded
from kaflow_engine.operators.rows.layout import identity, keyed, packed
from kaflow_engine.operators.rows.partitioning import first_parts
from kaflow_engine.operators.rows.reports import exchange_rows
from kaflow_engine.operators.rows.schemas import SIDE


def enter_side(flow: Flow, join: KeyedJoin, index: int, changes: Changes) -> Taken:
    """Take changes of a table: a row that is gone deletes, and one whose join key changes leaves
    the one and comes to the other, with one trigger.

    A row that does not pass the filter of the side is none, nor one without a join key. Where all
    rows with a join key match, each travels with its own key.
    """
    side, sides = join.sides[index], before_after(changes)
    kept = f" WHERE {side.filter}" if side.filter else ""
    chosen = f"{side.key} AS k, {packed(side.alias, side.columns)} AS payload"
    own = "" if side.rows is None else f", encode({_row_key(side.alias, side.rows)}) AS row"
    sql = f"SELECT rn, {chosen}{own} FROM ({sides.typed}){kept}"
    made, failed = guarded(f"SELECT * EXCLUDE (k), {keyed('k')} AS key FROM ({sql})", sides.rows)
    moves = sides.moves(keep(made, pc.is_valid(made["key"])), "key")
    rows: dict[str, pa.Array] = {}
    if side.rows is not None:
        rows = {"value": moves.rows["row"].combine_chunks()}
    return sides.taken(
        moves,
        moves.rows["key"].combine_chunks(),
        failed,
        partitions=flow.partitions,
        target=target_of(flow, join),
        kind=SIDE,
        side=index,
        payload=moves.coming("payload"),
        **rows,
    )


def _row_key(alias: str, columns: Sequence[Column]) -> str:
    return identity([(column, identifier(f"{alias}.{column.name}")) for column in columns])


def enter_events(flow: Flow, join: KeyedJoin, index: int, leaving: Leaving) -> Taken:
    """Take rows of groups as events of a side; one without a join key matches nothing."""
    side = join.sides[index]
    kept = f" WHERE {side.filter}" if side.filter else ""
    chosen = f"{side.key} AS k, {packed(side.alias, side.columns)} AS payload"
    made, failed = guarded(
        f"SELECT rn, payload, {keyed('k')} AS key FROM "
        f"(SELECT rn, {chosen} FROM ({leaving.typed}){kept})",
        leaving.rows,
    )
    placed = leaving.placed(keep(made, pc.is_valid(made["key"])))
    position = {**position_of(placed), "counted": False, "forced": False}
    rows = exchange_rows(
        placed.num_rows,
        target=target_of(flow, join),
        part=pa.array(first_parts(placed["key"].combine_chunks(), flow.partitions)),
        kind=SIDE,
        side=index,
        key=placed["key"],
        payload=placed["payload"],
        **position,
    )
    return Taken(
        rows=rows,
        numbers=placed["rn"],
        passed=placed,
        bit=EMITTED,
        bad=tuple(bad_records(failed)),
    )
