"""Rows on their way into runs, to one writer or to that of their source partition."""

import pyarrow as pa

from kaflow_engine.flow.edges import Driving
from kaflow_engine.flow.flow import Flow
from kaflow_engine.flow.graph import source_of, target_of
from kaflow_engine.flow.operators import Project
from kaflow_engine.flow.timed import Runs
from kaflow_engine.operators.handover import Leaving, Taken, position_of
from kaflow_engine.operators.outcomes.outcomes import EMITTED, by_ledger
from kaflow_engine.operators.output.entering import gathering
from kaflow_engine.operators.output.unnest import PLACES, first_of_each, ordered_by_place
from kaflow_engine.operators.row_errors.quarantine import bad_records, guarded
from kaflow_engine.operators.rows.partitioning import behind_shard, first_parts
from kaflow_engine.operators.rows.reports import exchange_rows
from kaflow_engine.operators.rows.schemas import READY


def enter_runs(flow: Flow, project: Project, runs: Runs, leaving: Leaving) -> Taken:
    """Take rows: compute what the SQL of runs reads, and address them."""
    sql = gathering(project, leaving.typed, raw=_may_be_letters(flow, project))
    found, failed = guarded(sql, leaving.rows)
    kept = leaving.placed(found)
    passed = kept
    if project.unnests:
        passed = first_of_each(kept.drop_columns([PLACES]))
        kept = ordered_by_place(kept)
    key = _keys(runs, kept)
    own = pa.chunked_array([first_parts(key, flow.partitions)])
    target, part = by_ledger(flow, project, kept, target_of(flow, runs), own)
    rows = exchange_rows(
        kept.num_rows,
        target=target,
        part=part,
        kind=READY,
        side=target_of(flow, project),
        key=key,
        payload=kept["payload"],
        **position_of(kept),
    )
    return Taken(
        rows=rows, numbers=kept["rn"], passed=passed, bit=EMITTED, bad=tuple(bad_records(failed))
    )


def _may_be_letters(flow: Flow, project: Project) -> bool:
    """Tell whether a record on which the SQL of a run fails becomes a dead letter; others need no
    bytes on their way."""
    edge = project.rows
    return isinstance(edge, Driving) and source_of(flow, edge).on_error == "dead_letter"


def _keys(runs: Runs, rows: pa.Table) -> pa.BinaryArray:
    if not runs.per_partition:
        return pa.repeat(pa.scalar(writer_key(""), pa.binary()), rows.num_rows)
    places = rows["d_part"].combine_chunks().dictionary_encode()
    keys = pa.array([writer_key(str(part)) for part in places.dictionary.to_pylist()], pa.binary())
    return keys.take(places.indices)


def writer_key(name: str) -> bytes:
    """Return the key of a writer behind its shard byte.

    Args:
        name: The source partition; empty: all rows have one writer.
    """
    return behind_shard(name.encode())
