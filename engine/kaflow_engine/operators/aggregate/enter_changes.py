"""Changes of a table on their way to an aggregate: rows that come, and rows that are taken away."""

import pyarrow as pa
import pyarrow.compute as pc

from kaflow_engine.flow.flow import Flow
from kaflow_engine.flow.graph import entries_of, target_of
from kaflow_engine.flow.operators import Aggregate, Project
from kaflow_engine.operators.handover import Changes, Taken
from kaflow_engine.operators.output.before_after import before_after
from kaflow_engine.operators.output.entering import entering
from kaflow_engine.operators.row_errors.quarantine import guarded
from kaflow_engine.operators.rows.schemas import READY, TAKEN


def enter_aggregate_changes(
    flow: Flow, project: Project, aggregate: Aggregate, changes: Changes
) -> Taken:
    """Take changes: compute the grouping values and arguments of the rows before and after.

    A row that stays what it is for the aggregate does not travel. One that changes travels twice,
    to the groups of before and after: first it is taken away. A row on which the SQL fails is no
    row.
    """
    sides = before_after(changes)
    sql = entering(project, aggregate.keys, aggregate.arguments, sides.typed, aggregate.shard)
    found, failed = guarded(sql, sides.rows)
    parted = sides
    if project.unnests:
        parted, found = sides.unnested(found, len(project.unnests))
    moves = parted.moves(found)
    identity = parted.changes.rows["group"].take(moves.changes)
    if len(entries_of(flow, aggregate)) > 1:  # rows of several tables may have one key
        branch = pa.scalar(aggregate.inputs.index(project.id).to_bytes(2))
        identity = pc.binary_join_element_wise(branch, identity, b"")
    return sides.taken(
        moves,
        moves.rows["key"].combine_chunks(),
        failed,
        partitions=flow.partitions,
        target=target_of(flow, aggregate),
        kind=pc.if_else(moves.comes, READY, TAKEN),
        side=target_of(flow, project),
        payload=moves.rows["payload"],
        value=identity,
    )
