"""The projection in one task: the rest of WHERE, the select list, and where its rows go."""

from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from kaflow_engine.duck.queries import query
from kaflow_engine.duck.quoting import identifier
from kaflow_engine.flow.chains import chain_of
from kaflow_engine.flow.flow import Flow
from kaflow_engine.flow.graph import sink_of, target_of
from kaflow_engine.flow.operators import Project
from kaflow_engine.flow.sinks import Sink
from kaflow_engine.operators.handover import Leaving, Taken, position_of
from kaflow_engine.operators.outcomes.outcomes import EMITTED, LEDGER_SHARD
from kaflow_engine.operators.output.encode import encode_rows, selected
from kaflow_engine.operators.output.unnest import (
    PLACES,
    first_of_each,
    ordered_by_place,
    unnested,
)
from kaflow_engine.operators.rows.partitioning import SHARDS, output_parts
from kaflow_engine.operators.rows.reports import exchange_rows
from kaflow_engine.operators.rows.schemas import READY


def run_project(flow: Flow, project: Project, leaving: Leaving) -> Taken:
    """Take rows: compute what is selected, encode it for the sink, and address it."""
    sink = sink_of(flow, project)
    columns = [column for column, _ in project.columns]
    places = PLACES if project.unnests else None
    done = encode_rows(sink, columns, _projected(project, leaving.typed), leaving.rows, places)
    kept = leaving.placed(done.rows)
    passed = kept
    if places:
        passed = first_of_each(kept.drop_columns([places]))
        kept = ordered_by_place(kept)
    target, part = _address(flow, project, sink, kept)
    rows = exchange_rows(
        kept.num_rows,
        target=target,
        part=part,
        kind=READY,
        side=target_of(flow, project),
        key=kept["out_key"],
        value=kept["value"],
        **position_of(kept),
    )
    return Taken(rows=rows, numbers=kept["rn"], passed=passed, bit=EMITTED, bad=done.bad)


def _projected(project: Project, typed: str) -> str:
    numbers = ["rn"]
    if project.unnests:
        numbers.append(identifier(PLACES))
        typed = unnested(project.unnests, typed)
    columns = (f"{sql} AS {selected(column)}" for column, sql in project.columns)
    chosen = ", ".join([*numbers, *columns])
    where = f" WHERE {project.where}" if project.where else ""
    return f"SELECT {chosen} FROM ({typed}){where}"


def _address(flow: Flow, project: Project, sink: Sink, rows: pa.Table) -> tuple[Any, Any]:
    """Return target and partition of rows; a ledger decides about forced ones."""
    to_sink = target_of(flow, sink)
    if not sink.exchange:
        return to_sink, rows["part"]
    part = output_parts(rows["out_key"], flow.partitions)
    ledger = chain_of(flow, project).ledger
    if ledger is None or not pc.any(rows["forced"]).as_py():
        return to_sink, part
    places = query(
        f"SELECT {LEDGER_SHARD} * {flow.partitions} // {SHARDS} AS part FROM rows",
        rows=rows.select(["d_part", "d_off"]),
    )
    target = pc.if_else(rows["forced"], target_of(flow, ledger), to_sink)
    return target, pc.if_else(rows["forced"], places["part"], part)
