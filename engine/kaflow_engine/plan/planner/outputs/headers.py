"""What is wrong with the headers that a query sets."""

from collections.abc import Iterator

from kaflow_engine.errors import ModelError, SqlError
from kaflow_engine.formats.headers import TYPES
from kaflow_engine.model.specs import PipelineSpec
from kaflow_engine.plan.planner.outputs.output import OutputParts
from kaflow_engine.sql.syntax import at_line


def wrong_headers(spec: PipelineSpec, output: OutputParts) -> Iterator[ModelError]:
    """Yield an error for headers that are of no type which records can have."""
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
