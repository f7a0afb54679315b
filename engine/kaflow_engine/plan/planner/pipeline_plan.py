"""A pipeline file and the columns of its topics to a plan."""

from collections.abc import Mapping, Sequence
from dataclasses import replace

from kaflow_engine.errors import ModelError
from kaflow_engine.flow.sinks import OPERATION
from kaflow_engine.formats.contract import format_of
from kaflow_engine.model.columns import Column
from kaflow_engine.model.config import Config
from kaflow_engine.model.files.yaml_file import raise_all
from kaflow_engine.model.record_columns import KEY, KEY_BYTES, NULL_VALUE, readable
from kaflow_engine.model.specs import PipelineSpec
from kaflow_engine.plan.planner.assemble import PlanParts, assemble
from kaflow_engine.plan.planner.chain_parts import ChainParts
from kaflow_engine.plan.planner.events.matching import row_times
from kaflow_engine.plan.planner.events.refused_matching import wrong_matching
from kaflow_engine.plan.planner.functions import use_functions
from kaflow_engine.plan.planner.grouping.refused_groups import wrong_groups, wrong_keys
from kaflow_engine.plan.planner.grouping.settings import keyed_shapes
from kaflow_engine.plan.planner.inputs.kafka_topics import wrong_clusters, wrong_letters
from kaflow_engine.plan.planner.inputs.source_plugins import plugin_columns, wrong_source_plugins
from kaflow_engine.plan.planner.inputs.sources import wrong_connections, wrong_secrets
from kaflow_engine.plan.planner.mistakes import Mistakes, placed
from kaflow_engine.plan.planner.outputs.connector import wrong_sinks
from kaflow_engine.plan.planner.outputs.headers import wrong_headers
from kaflow_engine.plan.planner.outputs.keys import wrong_key_formats
from kaflow_engine.plan.planner.outputs.output import OutputParts, wrong_names
from kaflow_engine.plan.planner.outputs.side_outputs import side_outputs, wrong_side_outputs
from kaflow_engine.plan.planner.outputs.typed import output_parts
from kaflow_engine.plan.planner.planned import PlannedPipeline
from kaflow_engine.plan.planner.refusals import wrong_roles, wrong_tables
from kaflow_engine.plan.planner.roles import timed_topics, topic_roles, topics_of_rows
from kaflow_engine.plan.planner.steps import key_steps
from kaflow_engine.plan.planner.tables.keys import TableKeys, table_keys
from kaflow_engine.plan.planner.tables.operations import columns_beside
from kaflow_engine.plan.planner.tables.topics import wrong_settings, wrong_table_topics
from kaflow_engine.plan.planner.topics import check_topic_names, topic_params
from kaflow_engine.plan.planner.transforms import wrong_transforms
from kaflow_engine.sql.chain_shapes import ChainShape, chain_shapes
from kaflow_engine.sql.groups.event_time import TIME
from kaflow_engine.sql.named.attached import attached_names
from kaflow_engine.sql.pipeline import key_type, names_written, pipeline_topics
from kaflow_engine.sql.scope import NeedsSchema
from kaflow_engine.sql.shape import QueryShape
from kaflow_engine.sql.types.bind import (
    check_types,
    normal_type,
    used_columns,
)
from kaflow_engine.sql.types.groups import source_columns
from kaflow_engine.sql.types.wide_operations import with_wide_operations


def declared_columns(spec: PipelineSpec, topic: str) -> tuple[Column, ...] | None:
    """Return the columns that the file declares for a topic, with types as DuckDB writes them.

    Raises:
        ModelError: a type that DuckDB does not know, or columns that the topic's format does not
            have.
    """
    said = spec.topic(topic)
    columns = None
    if said.key_type is not None:
        at = spec.place("topics", topic, "key_type")
        raise_all(check_types({KEY: said.key_type}, {KEY: at}))
    declared = plugin_columns(spec, topic) if said.columns is None else said.columns
    if declared is not None:
        places = {name: spec.place("topics", topic, "columns", name) for name in declared}
        raise_all(check_types(declared, places))
        columns = tuple(Column(name, normal_type(kind)) for name, kind in declared.items())
    if said.format is None:
        return columns
    with placed(spec.place("topics", topic, "format")):
        form = format_of(said.format)
    try:
        return form.declared(columns)
    except ModelError as error:
        path = ("topics", topic) if columns is None else ("topics", topic, "columns")
        what = "source" if topic in spec.sources else "topic"
        raise ModelError(
            f"{what} '{topic}': {error.message}", spec.place(*path), error.hint
        ) from error


def check_pipeline(spec: PipelineSpec, config: Config | None = None) -> tuple[ModelError, ...]:
    """Check what can be checked without a broker.

    Args:
        spec: What the author wrote.
        config: For defaults; None: the configuration's own.

    Returns:
        Notices: what could not be checked because columns are not known yet, and NULLs of which
        the author wants to know.

    Raises:
        ModelError: all mistakes that were found.
    """
    notices = _check(spec, config or Config(), whole=True)
    return (*notices, *spec.nulls.mistakes({}, where="warn"))


def check_draft(spec: PipelineSpec, config: Config | None = None) -> None:
    """Check what is left of a file of which some parts are wrong and left out.

    Nothing is said that the missing parts might set right.

    Raises:
        ModelError: all mistakes that were found.
    """
    _check(spec, config or Config(), whole=False)


def _check(spec: PipelineSpec, config: Config, *, whole: bool) -> tuple[ModelError, ...]:
    use_functions(config)
    mistakes = Mistakes(found=[*spec.nulls.mistakes({}, where="on")])
    topics = mistakes.attempt(lambda: pipeline_topics(spec))
    schemas = {
        topic: mistakes.attempt(lambda name=topic: declared_columns(spec, name))
        for topic in topics or spec.said_of_topics
    }
    if topics is not None:
        mistakes.found += check_topic_names(spec, topics)
    mistakes.found += [*wrong_table_topics(spec, schemas), *wrong_sinks(spec, config)]
    mistakes.found += [*wrong_secrets(spec, config), *wrong_transforms(spec)]
    mistakes.found += [*wrong_connections(spec, config), *wrong_clusters(spec, config)]
    mistakes.found += wrong_letters(spec, config)
    mistakes.found += [*wrong_source_plugins(spec, config), *wrong_side_outputs(spec)]
    written = [names_written(write) for write in spec.writes]
    try:
        shapes = keyed_shapes(spec, schemas.get)
    except NeedsSchema as notice:
        mistakes.found += wrong_names(spec, written)
        mistakes.raise_all()
        return (_as_written(notice, spec),)
    except ModelError as error:
        mistakes.found += [error, *wrong_names(spec, written, error)]
        mistakes.raise_all()
        raise
    mistakes.found += wrong_names(spec, _names(shapes), beside=_beside(shapes))
    known = {topic: columns for topic, columns in schemas.items() if columns is not None}
    if len(known) < len(schemas):
        mistakes.raise_all()
        start = spec.place(*spec.writes[0].query_at)
        unknown = NeedsSchema([topic for topic in schemas if topic not in known], start)
        return (_as_written(unknown, spec),)
    _plan(spec, config, known, shapes, mistakes, whole=whole)
    return ()


def _as_written(notice: NeedsSchema, spec: PipelineSpec) -> NeedsSchema:
    """Say of what is not known where the file at hand would declare it."""
    if spec.schema_first is not None:
        notice.hint = spec.schema_first.way_out.format(topic="<topic>")
    if spec.brought.columns_key is not None:
        notice.hint = (
            f"declare them under {spec.brought.columns_key}, or let the topic have a first record"
        )
    return notice


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
    use_functions(config)
    shapes = keyed_shapes(spec, schemas.get)
    read = dict.fromkeys(
        topic
        for branches in shapes
        for shape in branches
        for each in (*shape.below, shape)
        for topic in each.topics
    )
    found = [
        *check_topic_names(spec, [*read, *attached_names(spec)]),
        *wrong_table_topics(spec, schemas),
        *wrong_sinks(spec, config),
        *wrong_side_outputs(spec),
        *wrong_transforms(spec),
        *wrong_names(spec, _names(shapes), beside=_beside(shapes)),
        *spec.nulls.mistakes({}, where="on"),
    ]
    planned = _plan(spec, config, schemas, shapes, Mistakes(found=found), whole=True)
    assert planned is not None
    return planned


def _names(shapes: Sequence[Sequence[QueryShape]]) -> list[list[str]]:
    return [
        [e.name for e in branches[0].outputs if e.name not in (OPERATION, KEY_BYTES.name)]
        for branches in shapes
    ]


def _beside(shapes: Sequence[Sequence[QueryShape]]) -> list[set[str]]:
    return [{e.name for e in branches[0].outputs if e.role != "value"} for branches in shapes]


def _plan(
    spec: PipelineSpec,
    config: Config,
    schemas: Mapping[str, tuple[Column, ...]],
    shapes: Sequence[Sequence[QueryShape]],
    mistakes: Mistakes,
    *,
    whole: bool,
) -> PlannedPipeline | None:
    shapes = with_wide_operations(shapes, schemas)
    chains = chain_shapes(shapes)
    reads = [sources for chain in chains if (sources := chain.shape.read)]
    topics = dict.fromkeys(source.topic for sources in reads for source in sources)
    columns = {
        topic: (*readable(schemas[topic], key_type(spec.topic(topic))), NULL_VALUE, KEY_BYTES)
        for topic in topics
    }
    outputs = [
        output_parts(spec, config, number, branches, columns, mistakes)
        for number, branches in enumerate(shapes)
    ]
    keys = table_keys(spec, schemas.get)
    parts = [_chain(chain, outputs, columns, keys, mistakes) for chain in chains]
    roles = topic_roles(spec, config, reads, timed_topics(chains), topics_of_rows(chains))
    used = used_columns(shape for branches in shapes for shape in branches)
    for source in (source for sources in reads for source in sources if source.table):
        used[source.topic] |= columns_beside(spec, source, keys)
    for topic in row_times(spec, chains, roles):
        used[topic].add(TIME)
    params = mistakes.attempt(lambda: topic_params(spec, config, roles, used, schemas))
    mistakes.found += wrong_tables(spec, chains)
    mistakes.found += wrong_keys(spec, outputs, keys)
    mistakes.found += [e for output in outputs for e in wrong_key_formats(spec, output)]
    mistakes.found += [e for output in outputs for e in wrong_headers(spec, output)]
    mistakes.raise_all()
    if not whole:
        return None  # how topics are joined and rows emitted may be what is left out
    branches = [each for output in outputs for each in (*output.branches, *output.below)]
    settings = list(wrong_settings(spec, chains))
    settings = settings or [
        *wrong_groups(spec, branches),
        *wrong_matching(spec, chains, roles, schemas),
    ]
    raise_all([*wrong_roles(spec, chains), *settings])
    assert params is not None
    flow = assemble(
        PlanParts(
            spec=spec,
            roles=roles,
            topics=params,
            chains=tuple(part for part in parts if part is not None),
            outputs=tuple(outputs),
        )
    )
    return PlannedPipeline(
        spec=spec,
        chains=chains,
        roles=roles,
        schemas={topic: tuple(schemas[topic]) for topic in columns},
        plan=replace(flow, side_outputs=side_outputs(spec)),
    )


def _chain(
    chain: ChainShape,
    outputs: Sequence[OutputParts],
    columns: Mapping[str, Sequence[Column]],
    keys: TableKeys,
    mistakes: Mistakes,
) -> ChainParts | None:
    branches = tuple(outputs[each.output].branch(each.branch) for each in chain.branches)
    binder = branches[0].binder
    for part in (part for source in chain.shape.sources for part in source.filter):
        mistakes.attempt(lambda part=part: binder.check_condition(part))
    steps = mistakes.attempt(lambda: key_steps(chain.shape, binder))
    if steps is None:
        return None
    return ChainParts(
        queries=chain,
        steps=() if chain.shape.is_table else steps,
        types={
            (alias, column.name): column.type
            for alias, some in source_columns(chain.shape, columns, None).items()
            for column in some
        },
        binder=binder,
        branches=branches,
        keys=keys,
    )
