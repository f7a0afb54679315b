"""Rows on their way to an aggregate, over the key of its groups."""

import pyarrow as pa

from kaflow_engine.flow.edges import Driving
from kaflow_engine.flow.flow import Flow
from kaflow_engine.flow.graph import target_of
from kaflow_engine.flow.operators import Aggregate, Project
from kaflow_engine.operators.handover import Leaving, Taken, position_of
from kaflow_engine.operators.outcomes.outcomes import EMITTED, by_ledger
from kaflow_engine.operators.output.encode import selected
from kaflow_engine.operators.output.project import projected
from kaflow_engine.operators.output.unnest import PLACES, first_of_each, ordered_by_place
from kaflow_engine.operators.row_errors.dead_letters import RAW
from kaflow_engine.operators.row_errors.quarantine import bad_records, guarded
from kaflow_engine.operators.rows.layout import canonical, keyed
from kaflow_engine.operators.rows.partitioning import first_parts
from kaflow_engine.operators.rows.reports import exchange_rows
from kaflow_engine.operators.rows.row_text import pack, to_text
from kaflow_engine.operators.rows.schemas import READY


def enter_aggregate(flow: Flow, project: Project, aggregate: Aggregate, leaving: Leaving) -> Taken:
    """Take rows: compute their grouping values and the arguments, and address them."""
    found, failed = guarded(entering(project, aggregate, leaving.typed), leaving.rows)
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


def entering(project: Project, aggregate: Aggregate, typed: str) -> str:
    """Return a SELECT of `rn`, the key behind its shard byte, and the arguments as packed row.

    Args:
        project: The entry.
        aggregate: What the rows go into.
        typed: SELECT of `rn` and the columns of the rows before.
    """
    keys = [canonical(selected(column), column.type) for column in aggregate.keys]
    texts = [to_text(selected(column), column.type) for column in aggregate.arguments]
    places = f', "{PLACES}"' if project.unnests else ""
    edge = project.rows
    source = projected(project, typed)
    raw, joined = "", ""
    if isinstance(edge, Driving) and edge.raw is not None:  # a join has it beside its rows
        raw = ", r.raw"
        original = f"CASE WHEN {edge.raw} THEN {RAW} END"
        joined = f" JOIN (SELECT rn, {original} AS raw FROM ({typed})) r ON r.rn = p.rn"
    made = f"SELECT rn{places}, {pack(keys)} AS k, {pack(texts)} AS payload FROM ({source})"
    return f"SELECT p.rn{places}, {keyed('p.k')} AS key, p.payload{raw} FROM ({made}) p{joined}"
