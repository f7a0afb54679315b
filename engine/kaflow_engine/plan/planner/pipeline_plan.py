"""A pipeline file and the columns of its topics to a plan."""

from collections.abc import Mapping, Sequence

from kaflow_engine.errors import Location, ModelError
from kaflow_engine.formats.contract import format_of
from kaflow_engine.model.columns import Column
from kaflow_engine.model.config import Config
from kaflow_engine.model.files.yaml_file import raise_all
from kaflow_engine.model.output_specs import Write
from kaflow_engine.model.record_columns import readable
from kaflow_engine.model.specs import PipelineSpec
from kaflow_engine.plan.planner.assemble import ChainParts, assemble
from kaflow_engine.plan.planner.mistakes import Mistakes
from kaflow_engine.plan.planner.output import (
    OutputParts,
    output_schema,
    wrong_conditions,
    wrong_names,
    wrong_types,
)
from kaflow_engine.plan.planner.planned import PlannedPipeline
from kaflow_engine.plan.planner.refusals import require_one_chain
from kaflow_engine.plan.planner.steps import key_steps
from kaflow_engine.plan.planner.table import table_params
from kaflow_engine.plan.planner.topics import check_topic_names, topic_params, topic_roles
from kaflow_engine.sql.bind import (
    AliasColumns,
    Binder,
    check_types,
    expressions,
    normal_type,
    used_columns,
    with_elements,
)
from kaflow_engine.sql.pipeline import names_written, pipeline_shapes, pipeline_topics
from kaflow_engine.sql.scope import NeedsSchema
from kaflow_engine.sql.shape import QueryShape


def declared_columns(spec: PipelineSpec, topic: str) -> tuple[Column, ...] | None:
    """Return the columns that the file declares for a topic, with types as DuckDB writes them.

    Raises:
        ModelError: a type that DuckDB does not know, or columns that the topic's format does not
            have.
    """
    said = spec.topic(topic)
    columns = None
    if said.columns is not None:
        places = {name: spec.place("topics", topic, "columns", name) for name in said.columns}
        raise_all(check_types(said.columns, places))
        columns = tuple(Column(name, normal_type(kind)) for name, kind in said.columns.items())
    if said.format is None:
        return columns
    try:
        return format_of(said.format).declared(columns)
    except ModelError as error:
        path = ("topics", topic) if columns is None else ("topics", topic, "columns")
        raise ModelError(
            f"topic '{topic}': {error.message}", spec.place(*path), error.hint
        ) from error


def check_pipeline(spec: PipelineSpec, config: Config | None = None) -> tuple[ModelError, ...]:
    """Check what can be checked without a broker.

    Args:
        spec: What the author wrote.
        config: For defaults; None: the configuration's own.

    Returns:
        Notices: what could not be checked because columns are not known yet.

    Raises:
        ModelError: all mistakes that were found.
    """
    return _check(spec, config or Config(), whole=True)


def check_draft(spec: PipelineSpec, config: Config | None = None) -> None:
    """Check what is left of a file of which some parts are wrong and left out.

    Nothing is said that the missing parts might set right.

    Raises:
        ModelError: all mistakes that were found.
    """
    _check(spec, config or Config(), whole=False)


def _check(spec: PipelineSpec, config: Config, *, whole: bool) -> tuple[ModelError, ...]:
    mistakes = Mistakes()
    topics = mistakes.attempt(lambda: pipeline_topics(spec))
    schemas = {
        topic: mistakes.attempt(lambda name=topic: declared_columns(spec, name))
        for topic in topics or spec.topics
    }
    if topics is not None:
        mistakes.found += check_topic_names(spec, topics)
    written = [names_written(write) for write in spec.writes]
    try:
        shapes = pipeline_shapes(spec, schemas.get)
        require_one_chain(spec, shapes)
    except NeedsSchema as notice:
        mistakes.found += wrong_names(spec, written)
        mistakes.raise_all()
        return (notice,)
    except ModelError as error:
        mistakes.found += [error, *wrong_names(spec, written, error)]
        mistakes.raise_all()
        raise
    mistakes.found += wrong_names(spec, _names(shapes), keys=[shape.key for shape in shapes])
    known = {topic: columns for topic, columns in schemas.items() if columns is not None}
    if len(known) < len(schemas):
        mistakes.raise_all()
        start = spec.place(*spec.writes[0].query_at)
        return (NeedsSchema([topic for topic in schemas if topic not in known], start),)
    _plan(spec, config, known, shapes, mistakes, whole=whole)
    return ()


def build_plan(
    spec: PipelineSpec, config: Config, schemas: Mapping[str, tuple[Column, ...]]
) -> PlannedPipeline:
    """Plan a pipeline.

    Args:
        spec: What the author wrote.
        config: For defaults.
        schemas: The columns of every topic that the pipeline reads.

    Raises:
        ModelError: all mistakes that were found.
    """
    shapes = pipeline_shapes(spec, schemas.get)
    require_one_chain(spec, shapes)
    found = [
        *check_topic_names(spec, [source.topic for source in shapes[0].sources]),
        *wrong_names(spec, _names(shapes), keys=[shape.key for shape in shapes]),
    ]
    planned = _plan(spec, config, schemas, shapes, Mistakes(found=found), whole=True)
    assert planned is not None
    return planned


def _names(shapes: Sequence[QueryShape]) -> list[list[str]]:
    return [[output.name for output in shape.outputs] for shape in shapes]


def _plan(
    spec: PipelineSpec,
    config: Config,
    schemas: Mapping[str, tuple[Column, ...]],
    shapes: tuple[QueryShape, ...],
    mistakes: Mistakes,
    *,
    whole: bool,
) -> PlannedPipeline | None:
    first = shapes[0]
    topics = [source.topic for source in first.sources]
    of_alias = {s.alias: readable(schemas[s.topic]) for s in first.sources}
    binders = [
        _binder(shape, of_alias, spec.place(*write.query_at))
        for write, shape in zip(spec.writes, shapes, strict=True)
    ]
    outputs = [
        _output(spec, config, write, shape, binder, mistakes)
        for write, shape, binder in zip(spec.writes, shapes, binders, strict=True)
    ]
    for part in (part for source in first.sources for part in source.filter):
        mistakes.attempt(lambda part=part: binders[0].check_condition(part))
    steps = mistakes.attempt(lambda: key_steps(first, binders[0]))
    roles = topic_roles(spec, config, topics)
    used: dict[str, set[str]] = {}
    for shape in shapes:
        for alias, names in used_columns(shape).items():
            used.setdefault(alias, set()).update(names)
    params = mistakes.attempt(lambda: topic_params(spec, config, roles, first, used, schemas))
    mistakes.raise_all()
    if not whole:
        return None  # how topics are joined and rows emitted may be what is left out
    assert steps is not None
    assert params is not None
    parts = ChainParts(
        spec=spec,
        shape=first,
        steps=steps,
        roles=roles,
        types={(alias, c.name): c.type for alias, some in of_alias.items() for c in some},
        topics=params,
        binder=binders[0],
        outputs=tuple(outputs),
    )
    return PlannedPipeline(
        spec=spec,
        shapes=shapes,
        roles=roles,
        schemas={topic: tuple(columns) for topic, columns in schemas.items() if topic in topics},
        plan=assemble(parts),
    )


def _binder(shape: QueryShape, of_alias: AliasColumns, at: Location) -> Binder:
    return Binder(with_elements(of_alias, shape, at), at, expressions(shape))


def _output(
    spec: PipelineSpec,
    config: Config,
    write: Write,
    shape: QueryShape,
    binder: Binder,
    mistakes: Mistakes,
) -> OutputParts:
    for part in shape.where:
        mistakes.attempt(lambda part=part: binder.check_condition(part))
    outputs = tuple(
        (Column(output.name, kind), output.expr)
        for output in shape.outputs
        if (kind := mistakes.attempt(lambda o=output: binder.type_of(o.expr))) is not None
    )
    columns = [column for column, _ in outputs]
    values = [column for column in columns if shape.key is None or column.name != shape.key.name]
    mistakes.found += wrong_types(spec, write, columns)
    if len(outputs) == len(shape.outputs):
        mistakes.found += wrong_conditions(spec, write, values)
    return OutputParts(
        write=write,
        shape=shape,
        columns=outputs,
        binder=binder,
        avro=mistakes.attempt(lambda: output_schema(spec, write, values)),
        table=mistakes.attempt(lambda: table_params(spec, config, write, columns)),
    )
