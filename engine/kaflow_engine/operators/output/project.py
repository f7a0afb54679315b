"""The projection in one task: the rest of WHERE, the select list, and where its rows go."""

import pyarrow as pa

from kaflow_engine.duck.quoting import identifier
from kaflow_engine.flow.flow import Flow
from kaflow_engine.flow.graph import target_of
from kaflow_engine.flow.operators import Project
from kaflow_engine.flow.sinks import OPERATION, Sink, TopicSink
from kaflow_engine.operators.handover import Leaving, Taken, position_of
from kaflow_engine.operators.outcomes.outcomes import EMITTED, Address, by_ledger
from kaflow_engine.operators.output.encode import encode_rows
from kaflow_engine.operators.output.unnest import (
    PLACES,
    first_of_each,
    ordered_by_place,
    unnested,
)
from kaflow_engine.operators.rows.layout import selected
from kaflow_engine.operators.rows.partitioning import output_parts, own_parts
from kaflow_engine.operators.rows.reports import exchange_rows
from kaflow_engine.operators.rows.schemas import READY

_DOES = identifier("$does")
"""What a row of changes does, inside of a projection."""


def run_project(flow: Flow, project: Project, sink: Sink, leaving: Leaving) -> Taken:
    """Take rows: compute what is selected, encode it for the sink, and address it."""
    columns = [column for column, _ in project.columns]
    places = PLACES if project.unnests else None
    done = encode_rows(sink, columns, projected(project, leaving.typed), leaving.rows, places)
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
        payload=kept["headers"],
        **position_of(kept),
    )
    return Taken(rows=rows, numbers=kept["rn"], passed=passed, bit=EMITTED, bad=done.bad)


def projected(project: Project, typed: str, *more: str) -> str:
    """Return a SELECT of `rn` and what is selected, named by `selected`; with `$places` where lists
    are unnested, and what more is said of the rows before."""
    numbers = ["rn"]
    if project.unnests:
        numbers.append(identifier(PLACES))
        typed = unnested(project.unnests, typed)
    where = f" WHERE {project.where}" if project.where else ""
    columns = list(project.columns)
    operation = next((sql for column, sql in columns if column.name == OPERATION), None)
    if operation is not None:  # each column of a change asks for it, and it is computed once
        typed = f"SELECT *, {operation} AS {_DOES} FROM ({typed}){where}"
        where = ""
        columns = [(column, sql.replace(f"({operation})", _DOES)) for column, sql in columns]
        columns = [(c, _DOES if c.name == OPERATION else sql) for c, sql in columns]
    named = (f"{sql} AS {selected(column)}" for column, sql in columns)
    return f"SELECT {', '.join([*numbers, *named, *more])} FROM ({typed}){where}"


def _address(flow: Flow, project: Project, sink: Sink, rows: pa.Table) -> Address:
    """Return target and partition of rows; a ledger decides about forced ones."""
    to_sink = target_of(flow, sink)
    if not sink.exchange:
        return to_sink, rows["part"]
    own = isinstance(sink, TopicSink) and sink.takes_bytes
    if own:
        part = own_parts(rows, "out_key", flow.partitions)
    else:
        part = output_parts(rows["out_key"], flow.partitions)
    return by_ledger(flow, project, rows, to_sink, part)
