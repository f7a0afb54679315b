"""The projection in one task: the rest of WHERE, the select list, and where its rows go."""

from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from kaflow_engine.duck.queries import query
from kaflow_engine.flow.flow import Flow
from kaflow_engine.flow.graph import ledger_of, only_sink, target_of
from kaflow_engine.flow.operators import Project
from kaflow_engine.flow.sinks import Sink
from kaflow_engine.operators.handover import Leaving, Taken, position_of
from kaflow_engine.operators.outcomes.outcomes import EMITTED, LEDGER_SHARD
from kaflow_engine.operators.output.encode import encode_rows, selected
from kaflow_engine.operators.rows.partitioning import SHARDS, output_parts
from kaflow_engine.operators.rows.reports import exchange_rows
from kaflow_engine.operators.rows.schemas import READY


def run_project(flow: Flow, project: Project, leaving: Leaving) -> Taken:
    """Take rows: compute what is selected, encode it for the sink, and address it."""
    sink = only_sink(flow)
    columns = [column for column, _ in project.columns]
    done = encode_rows(sink, columns, _projected(project, leaving.typed), leaving.rows)
    kept = leaving.placed(done.rows)
    target, part = _address(flow, sink, kept)
    rows = exchange_rows(
        kept.num_rows,
        target=target,
        part=part,
        kind=READY,
        key=kept["out_key"],
        value=kept["value"],
        **position_of(kept),
    )
    return Taken(rows=rows, passed=kept, bit=EMITTED, bad=done.bad)


def _projected(project: Project, typed: str) -> str:
    chosen = ", ".join(["rn", *(f"{sql} AS {selected(column)}" for column, sql in project.columns)])
    where = f" WHERE {project.where}" if project.where else ""
    return f"SELECT {chosen} FROM ({typed}){where}"


def _address(flow: Flow, sink: Sink, rows: pa.Table) -> tuple[Any, Any]:
    """Return target and partition of rows; a ledger decides about forced ones."""
    to_sink = target_of(flow, sink)
    if not sink.exchange:
        return to_sink, rows["part"]
    part = output_parts(rows["out_key"], flow.partitions)
    ledger = ledger_of(flow)
    if ledger is None or not pc.any(rows["forced"]).as_py():
        return to_sink, part
    places = query(
        f"SELECT {LEDGER_SHARD} * {flow.partitions} // {SHARDS} AS part FROM rows",
        rows=rows.select(["d_part", "d_off"]),
    )
    target = pc.if_else(rows["forced"], target_of(flow, ledger), to_sink)
    return target, pc.if_else(rows["forced"], places["part"], part)
