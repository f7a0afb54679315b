"""Changes of a table on their way to a join that looks its rows up, over the key of the join."""

import pyarrow.compute as pc

from kaflow_engine.flow.flow import Flow
from kaflow_engine.flow.graph import target_of
from kaflow_engine.flow.operators import KeyedJoin
from kaflow_engine.formats.pick import keep
from kaflow_engine.operators.handover import Changes, Taken
from kaflow_engine.operators.output.before_after import before_after
from kaflow_engine.operators.row_errors.quarantine import guarded
from kaflow_engine.operators.rows.layout import keyed, packed
from kaflow_engine.operators.rows.schemas import SIDE


def enter_side(flow: Flow, join: KeyedJoin, index: int, changes: Changes) -> Taken:
    """Take changes of a table whose key is that of the join: a row that is gone deletes.

    A row that does not pass the filter of the side is none, nor one without a key.
    """
    side, sides = join.sides[index], before_after(changes)
    kept = f" WHERE {side.filter}" if side.filter else ""
    chosen = f"{side.key} AS k, {packed(side.alias, side.columns)} AS payload"
    sql = f"SELECT rn, {chosen} FROM ({sides.typed}){kept}"
    made, failed = guarded(f"SELECT rn, {keyed('k')} AS key, payload FROM ({sql})", sides.rows)
    moves = sides.moves(keep(made, pc.is_valid(made["key"])), "key")
    return sides.taken(
        moves,
        moves.rows["key"].combine_chunks(),
        failed,
        partitions=flow.partitions,
        target=target_of(flow, join),
        kind=SIDE,
        side=index,
        payload=moves.coming("payload"),
    )
