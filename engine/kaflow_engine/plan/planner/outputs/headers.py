"""What is wrong with the headers that a query sets."""

from collections.abc import Iterator

from kaflow_engine.errors import ModelError, SqlError
from kaflow_engine.formats.headers import TYPES
from kaflow_engine.model.letters import PREFIX
from kaflow_engine.model.specs import PipelineSpec
from kaflow_engine.plan.planner.grouping.settings import pace
from kaflow_engine.plan.planner.outputs.output import OutputParts
from kaflow_engine.sql.syntax import at_line


def wrong_headers(spec: PipelineSpec, output: OutputParts) -> Iterator[ModelError]:
    """Yield an error for headers that are of no type which records can have, and for one of
    operations or of traces where rows have none."""
    yield from _wrong_operation(spec, output)
    if output.write.output.trace_context and output.headers is None:
        yield ModelError(
            "'trace_context' is for rows that are made of a record each, and those of this output "
            "are of groups or of tables",
            spec.place(*output.write.at, "trace_context"),
            "remove it",
        )
    start = spec.place(*output.write.query_at)
    for branch in output.branches:
        headers = branch.shape.headers
        kinds = (c.type for c, e in branch.columns if headers is not None and e is headers.expr)
        for kind in kinds:
            if kind not in TYPES:
                yield SqlError(
                    f"the headers are of type {kind}, and those of records are {TYPES[0]} or "
                    f"{TYPES[1]}",
                    at_line(start, headers.expr.line if headers else None) or start,
                    "write a map, such as map {'source': 'web', 'id': CAST(id AS VARCHAR)}; or "
                    "give the column another name: it is then part of the value",
                )


def _wrong_operation(spec: PipelineSpec, output: OutputParts) -> Iterator[ModelError]:
    said, write = output.write.output, output.write
    name = said.operation_header
    if name is None:
        return
    at = spec.place(*write.at, "operation")
    changes = output.has_operations or any(branch.is_table for branch in output.branches)
    if name.startswith(PREFIX):
        yield ModelError(
            f"headers that begin with '{PREFIX}' are those of the engine", at, "name another header"
        )
    elif not changes:
        yield ModelError(
            "'operation' is for rows that change and go, and each row of this output is one of its "
            "own",
            at,
            "remove it; with changes: append the column _op says what a change does"
            if said.changes
            else "remove it; or read the topic behind the query as a table",
        )
    elif not output.has_operations and pace(spec, write) is not None:
        yield ModelError(
            "'operation' does not work with every: what is held back is one change of several",
            at,
            "remove one of the two; coalesce: batch makes one change of those of a batch",
        )
