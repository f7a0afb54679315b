"""Rows on their way to an aggregate, over the key of its groups."""

import pyarrow as pa

from kaflow_engine.flow.flow import Flow
from kaflow_engine.flow.graph import target_of
from kaflow_engine.flow.operators import Aggregate, Project
from kaflow_engine.operators.handover import Leaving, Taken, position_of
from kaflow_engine.operators.outcomes.outcomes import EMITTED, by_ledger
from kaflow_engine.operators.output.entering import entering
from kaflow_engine.operators.output.unnest import PLACES, first_of_each, ordered_by_place
from kaflow_engine.operators.row_errors.quarantine import bad_records, guarded
from kaflow_engine.operators.rows.partitioning import first_parts
from kaflow_engine.operators.rows.reports import exchange_rows
from kaflow_engine.operators.rows.schemas import READY


def enter_aggregate(flow: Flow, project: Project, aggregate: Aggregate, leaving: Leaving) -> Taken:
    """Take rows: compute their grouping values and the arguments, and address them."""
    sql = entering(project, aggregate.keys, aggregate.arguments, leaving.typed, aggregate.shard)
    found, failed = guarded(sql, leaving.rows)
    kept = leaving.placed(found)
    passed = kept
    if project.unnests:
        passed = first_of_each(kept.drop_columns([PLACES]))
        kept = ordered_by_place(kept)
    own = pa.chunked_array([first_parts(kept["key"].combine_chunks(), flow.partitions)])
    target, part = by_ledger(flow, project, kept, target_of(flow, aggregate), own)
    rows = exchange_rows(
        kept.num_rows,
        target=target,
        part=part,
        kind=READY,
        side=target_of(flow, project),
        key=kept["key"],
        payload=kept["payload"],
        **position_of(kept),
    )
    return Taken(
        rows=rows, numbers=kept["rn"], passed=passed, bit=EMITTED, bad=tuple(bad_records(failed))
    )
