"""A pipeline file and the columns of its topics to a plan."""

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from kaflow_engine.errors import ModelError
from kaflow_engine.flow.flow import Flow
from kaflow_engine.flow.graph import decode_id
from kaflow_engine.flow.operators import Driving
from kaflow_engine.flow.sinks import TableParams
from kaflow_engine.flow.sources import TopicParams
from kaflow_engine.model.columns import Column
from kaflow_engine.model.config import Config
from kaflow_engine.model.files.yaml_file import raise_all
from kaflow_engine.model.record_columns import readable
from kaflow_engine.model.specs import PipelineSpec
from kaflow_engine.operators.rows.layout import key_text
from kaflow_engine.plan.planner.mistakes import Mistakes
from kaflow_engine.plan.planner.original_bytes import raw_condition
from kaflow_engine.plan.planner.output import (
    output_schema,
    wrong_conditions,
    wrong_names,
    wrong_types,
)
from kaflow_engine.plan.planner.planned import PlannedPipeline
from kaflow_engine.plan.planner.steps import (
    KeyStep,
    key_steps,
    keyed_joins,
    parts_early,
    present,
    refuse_chains,
    refuse_reemit,
    required,
)
from kaflow_engine.plan.planner.table import table_params
from kaflow_engine.plan.planner.topics import (
    TopicRole,
    check_topic_names,
    topic_params,
    topic_roles,
)
from kaflow_engine.plan.planner.wiring import (
    chained,
    projection,
    sink_of,
)
from kaflow_engine.sql.bind import (
    Binder,
    check_types,
    expressions,
    normal_type,
    used_columns,
)
from kaflow_engine.sql.parse import output_names
from kaflow_engine.sql.pipeline import pipeline_shape, pipeline_topics
from kaflow_engine.sql.scope import NeedsSchema
from kaflow_engine.sql.shape import Expr, OutputShape, QueryShape

MAX_DEFAULT_PARTITIONS = 4


def declared_columns(spec: PipelineSpec, topic: str) -> tuple[Column, ...] | None:
    """Return the columns that the file declares for a topic, with types as DuckDB writes them.

    Raises:
        ModelError: a type that DuckDB does not know.
    """
    columns = spec.topic(topic).columns
    if columns is None:
        return None
    places = {name: spec.place("topics", topic, "columns", name) for name in columns}
    raise_all(check_types(columns, places))
    return tuple(Column(name, normal_type(kind)) for name, kind in columns.items())


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
    start = spec.place("query")
    topics = mistakes.attempt(lambda: pipeline_topics(spec))
    schemas = {
        topic: mistakes.attempt(lambda name=topic: declared_columns(spec, name))
        for topic in topics or spec.topics
    }
    if topics is not None:
        mistakes.found += check_topic_names(spec, topics)
    try:
        shape = pipeline_shape(spec, schemas.get)
    except NeedsSchema as notice:
        mistakes.found += wrong_names(spec, output_names(spec.query))
        mistakes.raise_all()
        return (notice,)
    except ModelError as error:
        mistakes.found += [error, *wrong_names(spec, output_names(spec.query), error)]
        mistakes.raise_all()
        raise
    mistakes.found += wrong_names(spec, [output.name for output in shape.outputs], key=shape.key)
    known = {topic: columns for topic, columns in schemas.items() if columns is not None}
    if len(known) < len(schemas):
        mistakes.raise_all()
        return (NeedsSchema([topic for topic in schemas if topic not in known], start),)
    _plan(spec, config, known, shape, mistakes, whole=whole)
    return ()


def build_plan(
    spec: PipelineSpec, config: Config, schemas: Mapping[str, tuple[Column, ...]]
) -> PlannedPipeline:
    """Plan a pipeline.

    Args:
        spec: What the author wrote.
        config: For defaults.
        schemas: The columns of every topic that the query reads.

    Raises:
        ModelError: all mistakes that were found.
    """
    shape = pipeline_shape(spec, schemas.get)
    found = [
        *check_topic_names(spec, [source.topic for source in shape.sources]),
        *wrong_names(spec, [output.name for output in shape.outputs], key=shape.key),
    ]
    planned = _plan(spec, config, schemas, shape, Mistakes(found=found), whole=True)
    assert planned is not None
    return planned


def _plan(
    spec: PipelineSpec,
    config: Config,
    schemas: Mapping[str, tuple[Column, ...]],
    shape: QueryShape,
    mistakes: Mistakes,
    *,
    whole: bool,
) -> PlannedPipeline | None:
    topics = [source.topic for source in shape.sources]
    used = used_columns(shape)
    of_alias = {s.alias: readable(schemas[s.topic]) for s in shape.sources}
    binder = Binder(of_alias, spec.place("query"), expressions(shape))
    types = {(alias, c.name): c.type for alias, some in of_alias.items() for c in some}
    for part in [*shape.where, *(part for source in shape.sources for part in source.filter)]:
        mistakes.attempt(lambda part=part: binder.check_condition(part))
    outputs = [
        (Column(output.name, kind), output.expr)
        for output in shape.outputs
        if (kind := mistakes.attempt(lambda o=output: binder.type_of(o.expr))) is not None
    ]
    key = shape.key.name if shape.key else None
    values = [column for column, _ in outputs if column.name != key]
    mistakes.found += wrong_types(spec, [column for column, _ in outputs])
    if len(outputs) == len(shape.outputs):
        mistakes.found += wrong_conditions(spec, values)
    steps = mistakes.attempt(lambda: key_steps(shape, binder))
    roles = topic_roles(spec, config, topics)
    params = mistakes.attempt(lambda: topic_params(spec, config, roles, shape, used, schemas))
    avro = mistakes.attempt(lambda: output_schema(spec, values))
    table = mistakes.attempt(lambda: table_params(spec, config, [column for column, _ in outputs]))
    mistakes.raise_all()
    if not whole:
        return None  # how topics are joined and rows emitted may be what is left out
    assert steps is not None
    assert params is not None
    parts = _Parts(
        spec=spec,
        shape=shape,
        steps=steps,
        roles=roles,
        types=types,
        binder=binder,
        outputs=outputs,
        table=table,
    )
    return PlannedPipeline(
        spec=spec,
        shape=shape,
        roles=roles,
        schemas={topic: tuple(columns) for topic, columns in schemas.items() if topic in topics},
        plan=_assemble(parts, params, avro),
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class _Parts:
    """What a plan is put together from."""

    spec: PipelineSpec
    shape: QueryShape
    steps: Sequence[KeyStep]
    roles: tuple[TopicRole, ...]
    types: dict[tuple[str, str], str]
    binder: Binder
    outputs: Sequence[tuple[Column, Expr]]
    table: TableParams | None


def _assemble(parts: _Parts, topics: tuple[TopicParams, ...], avro: str | None) -> Flow:
    spec, shape, steps = parts.spec, parts.shape, parts.steps
    alias = shape.driving.alias
    before = [part for part in shape.where if part.aliases <= {alias}]
    after = [part for part in shape.where if not part.aliases <= {alias}]
    refuse_chains(spec, shape, steps, parts.roles)
    refuse_reemit(spec, len(steps))
    key = _output(shape, spec.output.key) if spec.output.key is not None else shape.key
    wanted: list[OutputShape] = []
    if spec.emission.type == "smart":
        names = [*spec.emission.require, *([key.name] if key else [])]
        wanted = [found for name in names if (found := _output(shape, name))]
    needs = required(spec, steps, wanted)
    finishing = [*after, *(expr for _, expr in parts.outputs)]
    later = [
        *finishing,
        *(e for n in needs.steps for e in n),
        *(e for s in steps[1:] for e in s.outer),
    ]
    raw = raw_condition(spec, alias, key.expr if key else None, later, parts.binder)
    role = next(role for role in parts.roles if role.driving)
    driving = Driving(
        input=decode_id(role.name),
        alias=alias,
        columns=(),
        filter=" AND ".join(f"({part.sql})" for part in before) or None,
        key=key_text(steps[0].key) if steps else None,
        needs=None if spec.emission.type == "final" else present(needs.driving),
        raw=raw if steps else None,
        ttl=role.ttl,
        emission=spec.emission.type,
        on_expiry=spec.emission.on_expiry,
        reemit=spec.on_dimension_update == "reemit",
    )
    driving, joined = keyed_joins(
        spec, shape, steps, needs, finishing, parts.roles, parts.types, driving
    )
    ledger = parts_early(spec, shape, steps, parts.roles, after, fails=raw == "TRUE")
    where = " AND ".join(f"({part.sql})" for part in after) or None
    columns = tuple((column, expr.sql) for column, expr in parts.outputs)
    operators = chained(
        [topic.name for topic in topics],
        joined,
        projection(spec.name, joined[-1] if joined else driving, where, columns),
        ledger=ledger,
    )
    return Flow(
        pipeline=spec.id,
        name=spec.name,
        sources=topics,
        operators=operators,
        sinks=(sink_of(spec, steps, key, operators, parts.table, avro),),
        partitions=spec.partitions or min(os.cpu_count() or 1, MAX_DEFAULT_PARTITIONS),
        dead_letter_topic=spec.dead_letters.topic or f"{spec.name}.dead_letters",
        delivery=spec.delivery,
        dimensions_first=spec.dimensions_first,
        max_dead_letters=spec.dead_letters.max_count,
        max_dead_rate=spec.dead_letters.max_rate,
    )


def _output(shape: QueryShape, name: str) -> OutputShape | None:
    return next((o for o in shape.outputs if o.name.lower() == name.lower()), None)
