"""An output and its queries, typed: what each selects, groups by and looks up."""

from collections.abc import Mapping, Sequence

from kaflow_engine.flow.sinks import OPERATION
from kaflow_engine.model.columns import Column
from kaflow_engine.model.config import Config
from kaflow_engine.model.outputs.output_specs import Write
from kaflow_engine.model.specs import PipelineSpec
from kaflow_engine.plan.planner.grouping.settings import (
    group_parts,
    group_settings,
)
from kaflow_engine.plan.planner.mistakes import Mistakes
from kaflow_engine.plan.planner.outputs.connector import unfit_columns
from kaflow_engine.plan.planner.outputs.output import (
    BranchParts,
    OutputParts,
    key_schema_of,
    output_schema,
    wrong_conditions,
    wrong_types,
)
from kaflow_engine.plan.planner.outputs.table import table_params
from kaflow_engine.sql.chain_shapes import below
from kaflow_engine.sql.shape import QueryShape
from kaflow_engine.sql.types.bind import (
    Binder,
    expressions,
    with_elements,
)
from kaflow_engine.sql.types.groups import group_columns, rows_of_groups, source_columns


def output_parts(
    spec: PipelineSpec,
    config: Config,
    number: int,
    shapes: Sequence[QueryShape],
    columns: Mapping[str, Sequence[Column]],
    mistakes: Mistakes,
) -> OutputParts:
    """Return what is known of an output.

    Args:
        spec: What the author wrote.
        config: For defaults.
        number: Which output.
        shapes: The branches of its query.
        columns: Of each topic.
        mistakes: Takes those that are found.
    """
    write = spec.writes[number]
    branches = tuple(
        _branch(spec, write, (number, i), shape, columns, mistakes)
        for i, shape in enumerate(shapes)
    )
    first = branches[0]
    found = [column for column, _ in first.columns]
    beside = [each.expr for each in first.shape.outputs if each.role != "value"]
    values = [
        column
        for column, expr in first.columns
        if column.name != OPERATION and all(expr is not each for each in beside)
    ]
    mistakes.found += wrong_types(spec, write, found)
    if len(found) == len(first.shape.outputs):
        mistakes.found += wrong_conditions(spec, write, values)
    mistakes.found += unfit_columns(spec, write, values)
    return OutputParts(
        write=write,
        branches=branches,
        below=tuple(
            _branch(spec, write, (number, -n), shape, columns, mistakes)
            for n, shape in enumerate(below(shapes), 1)
        ),
        avro=mistakes.attempt(lambda: output_schema(spec, write, values)),
        key_avro=mistakes.attempt(lambda: key_schema_of(spec, write, first)),
        table=mistakes.attempt(
            lambda: table_params(spec, config, write, values, bool(first.gathered))
        ),
    )


def _branch(
    spec: PipelineSpec,
    write: Write,
    place: tuple[int, int],
    shape: QueryShape,
    columns: Mapping[str, Sequence[Column]],
    mistakes: Mistakes,
) -> BranchParts:
    at = spec.place(*write.query_at)
    rows = with_elements(source_columns(shape, columns, at), shape, at)
    groups = group_columns(rows, shape, at)
    binder = Binder({**rows, **rows_of_groups(shape, groups)}, at, expressions(shape))
    for part in (*shape.where, *(part for group in shape.groups for part in group.where)):
        mistakes.attempt(lambda part=part: binder.check_condition(part))
    outputs = tuple(
        (Column(output.name, kind), output.expr)
        for output in shape.outputs
        if (kind := mistakes.attempt(lambda o=output: binder.type_of(o.expr))) is not None
    )
    return BranchParts(
        place=place,
        write=write,
        shape=shape,
        columns=outputs,
        binder=binder,
        groups=group_parts(
            shape, group_settings(spec, write, shape, is_looked_up=place[1] < 0), groups
        ),
    )
