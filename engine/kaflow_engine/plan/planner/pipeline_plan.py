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
from kaflow_engine.plan.planner.assemble import ChainParts, PlanParts, assemble
from kaflow_engine.plan.planner.mistakes import Mistakes
from kaflow_engine.plan.planner.output import (
    BranchParts,
    OutputParts,
    output_schema,
    wrong_conditions,
    wrong_names,
    wrong_types,
)
from kaflow_engine.plan.planner.planned import PlannedPipeline
from kaflow_engine.plan.planner.refusals import wrong_roles, wrong_tables
from kaflow_engine.plan.planner.steps import key_steps
from kaflow_engine.plan.planner.table import table_params
from kaflow_engine.plan.planner.topics import check_topic_names, topic_params, topic_roles
from kaflow_engine.sql.chain_shapes import ChainShape, chain_shapes
from kaflow_engine.sql.pipeline import names_written, pipeline_shapes, pipeline_topics
from kaflow_engine.sql.scope import NeedsSchema
from kaflow_engine.sql.shape import OutputShape, QueryShape
from kaflow_engine.sql.types.bind import (
    Binder,
    check_types,
    expressions,
    normal_type,
    used_columns,
    with_elements,
)


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
    except NeedsSchema as notice:
        mistakes.found += wrong_names(spec, written)
        mistakes.raise_all()
        return (notice,)
    except ModelError as error:
        mistakes.found += [error, *wrong_names(spec, written, error)]
        mistakes.raise_all()
        raise
    mistakes.found += wrong_names(spec, _names(shapes), keys=_keys(shapes))
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
    read = dict.fromkeys(
        source.topic for branches in shapes for shape in branches for source in shape.sources
    )
    found = [
        *check_topic_names(spec, list(read)),
        *wrong_names(spec, _names(shapes), keys=_keys(shapes)),
    ]
    planned = _plan(spec, config, schemas, shapes, Mistakes(found=found), whole=True)
    assert planned is not None
    return planned


def _names(shapes: Sequence[Sequence[QueryShape]]) -> list[list[str]]:
    return [[output.name for output in branches[0].outputs] for branches in shapes]


def _keys(shapes: Sequence[Sequence[QueryShape]]) -> list[OutputShape | None]:
    return [branches[0].key for branches in shapes]


def _plan(
    spec: PipelineSpec,
    config: Config,
    schemas: Mapping[str, tuple[Column, ...]],
    shapes: Sequence[Sequence[QueryShape]],
    mistakes: Mistakes,
    *,
    whole: bool,
) -> PlannedPipeline | None:
    chains = chain_shapes(shapes)
    reads = [[source.topic for source in chain.shape.sources] for chain in chains]
    columns = {topic: readable(schemas[topic]) for topics in reads for topic in topics}
    outputs = [
        _output(spec, config, number, branches, columns, mistakes)
        for number, branches in enumerate(shapes)
    ]
    parts = [_chain(chain, outputs, columns, mistakes) for chain in chains]
    roles = topic_roles(spec, config, reads)
    used = used_columns(shape for branches in shapes for shape in branches)
    params = mistakes.attempt(lambda: topic_params(spec, config, roles, used, schemas))
    mistakes.found += wrong_tables(spec, chains)
    mistakes.raise_all()
    if not whole:
        return None  # how topics are joined and rows emitted may be what is left out
    raise_all(wrong_roles(spec, chains))
    assert params is not None
    return PlannedPipeline(
        spec=spec,
        chains=chains,
        roles=roles,
        schemas={topic: tuple(schemas[topic]) for topic in columns},
        plan=assemble(
            PlanParts(
                spec=spec,
                roles=roles,
                topics=params,
                chains=tuple(part for part in parts if part is not None),
                outputs=tuple(outputs),
            )
        ),
    )


def _chain(
    chain: ChainShape,
    outputs: Sequence[OutputParts],
    columns: Mapping[str, Sequence[Column]],
    mistakes: Mistakes,
) -> ChainParts | None:
    branches = tuple(outputs[each.output].branches[each.branch] for each in chain.branches)
    binder = branches[0].binder
    for part in (part for source in chain.shape.sources for part in source.filter):
        mistakes.attempt(lambda part=part: binder.check_condition(part))
    steps = mistakes.attempt(lambda: key_steps(chain.shape, binder))
    if steps is None:
        return None
    return ChainParts(
        queries=chain,
        steps=steps,
        types={
            (source.alias, column.name): column.type
            for source in chain.shape.sources
            for column in columns[source.topic]
        },
        binder=binder,
        branches=branches,
    )


def _output(
    spec: PipelineSpec,
    config: Config,
    number: int,
    shapes: Sequence[QueryShape],
    columns: Mapping[str, Sequence[Column]],
    mistakes: Mistakes,
) -> OutputParts:
    write = spec.writes[number]
    branches = tuple(
        _branch(write, (number, i), shape, columns, spec.place(*write.query_at), mistakes)
        for i, shape in enumerate(shapes)
    )
    first = branches[0]
    found = [column for column, _ in first.columns]
    own_key = first.shape.key
    values = [column for column in found if own_key is None or column.name != own_key.name]
    mistakes.found += wrong_types(spec, write, found)
    if len(found) == len(first.shape.outputs):
        mistakes.found += wrong_conditions(spec, write, values)
    return OutputParts(
        write=write,
        branches=branches,
        avro=mistakes.attempt(lambda: output_schema(spec, write, values)),
        table=mistakes.attempt(lambda: table_params(spec, config, write, found)),
    )


def _branch(
    write: Write,
    place: tuple[int, int],
    shape: QueryShape,
    columns: Mapping[str, Sequence[Column]],
    at: Location,
    mistakes: Mistakes,
) -> BranchParts:
    of_alias = {source.alias: columns[source.topic] for source in shape.sources}
    binder = Binder(with_elements(of_alias, shape, at), at, expressions(shape))
    for part in shape.where:
        mistakes.attempt(lambda part=part: binder.check_condition(part))
    outputs = tuple(
        (Column(output.name, kind), output.expr)
        for output in shape.outputs
        if (kind := mistakes.attempt(lambda o=output: binder.type_of(o.expr))) is not None
    )
    return BranchParts(place=place, write=write, shape=shape, columns=outputs, binder=binder)
