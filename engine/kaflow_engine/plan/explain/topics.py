"""The topics of a pipeline, as `kaflow explain` shows them."""

from collections.abc import Iterator, Mapping, Sequence

from kaflow_engine.model.columns import Column
from kaflow_engine.model.config import Config, topic_format
from kaflow_engine.model.sources.hybrid_specs import HybridSourceSpec
from kaflow_engine.model.sources.live_specs import LiveSourceSpec
from kaflow_engine.model.sources.source_spec import SourceSpec
from kaflow_engine.model.sources.source_specs import FilesSourceSpec
from kaflow_engine.model.sources.topic_specs import TopicSpec
from kaflow_engine.model.specs import PipelineSpec
from kaflow_engine.plan.explain.topic_part import SourcePart, TopicPart
from kaflow_engine.plan.planner.inputs.source_plugins import ends, replays
from kaflow_engine.plan.planner.roles import TopicRole
from kaflow_engine.sql.chain_shapes import ChainShape
from kaflow_engine.sql.shape import QueryShape

Columns = Mapping[str, tuple[Column, ...]]


def topic_part(
    spec: PipelineSpec,
    config: Config,
    role: TopicRole,
    queries: Sequence[ChainShape],
    schemas: Columns,
) -> TopicPart:
    """Explain how a topic is read.

    Args:
        spec: What the author wrote.
        config: For defaults.
        role: The topic, and what it is to the pipeline.
        queries: Those of the outputs; empty: they are not known yet.
        schemas: The columns of topics, as far as they are known.
    """
    topic = spec.topic(role.name)
    event = role.driving or role.side
    names = (
        ("driving", role.driving),
        ("event side", role.side),
        ("dimension", role.dimension),
        ("table", role.table),
    )
    return TopicPart(
        name=role.name,
        roles=tuple(name for name, has in names if has),
        format=topic_format(spec, config, role.name),
        keys=_keys(topic),
        event_time=role.clocks[0].column,
        other_times=tuple(
            (each.column, tuple(name or role.name for name in each.readings))
            for each in role.clocks[1:]
        ),
        ttl=role.ttl if event else None,
        ttl_from=role.ttl_from if event else None,
        lateness=topic.lateness,
        idle_timeout=topic.idle_timeout,
        max_future=topic.max_future,
        on_error=topic.on_error,
        on_data_loss=topic.on_data_loss,
        on_schema_change=topic.on_schema_change,
        lookup=topic.lookup if role.dimension else None,
        keep=topic.history.keep,
        history=topic.history.path,
        tombstones=_tombstones(spec, role, [each.shape for each in queries]),
        columns=schemas.get(role.name),
        source=_source(spec, role.name),
        place=None if (place := spec.target_of(role.name)) == role.name else place,
    )


def attached_part(spec: PipelineSpec, name: str, schemas: Columns) -> TopicPart:
    """Explain a table of a database that queries look up."""
    said = spec.topic(name)
    return TopicPart(
        name=name,
        roles=("looked up",),
        format="",
        event_time=None,
        ttl=None,
        ttl_from=None,
        lateness=0,
        idle_timeout=0,
        max_future=0,
        on_error=said.on_error,
        on_data_loss=said.on_data_loss,
        on_schema_change=said.on_schema_change,
        lookup=None,
        keep=None,
        history=None,
        tombstones=None,
        columns=schemas.get(name),
        source=_source(spec, name),
        looked_up=True,
    )


def _source(spec: PipelineSpec, name: str) -> SourcePart | None:
    said = spec.sources.get(name)
    if said is None:
        return None
    is_files = isinstance(said, FilesSourceSpec)
    live = said if isinstance(said, LiveSourceSpec) and not replays(said) else None
    return SourcePart(
        kind=said.type.partition(":")[0],
        about=said.about,
        record_time=said.record_time,
        pages_by=said.pages_by,
        guarantee=_guarantee(spec, said),
        format=said.format if is_files else None,
        path=said.path if is_files else None,
        ends=ends(said),
        journal=f".journals/{spec.id}/{name}" if live else None,
    )


def _guarantee(spec: PipelineSpec, said: SourceSpec) -> str | None:
    """Return what is promised; of rows that come twice, what becomes of them in the outputs."""
    replaced = all(write.sink is not None and write.sink.replaces for write in spec.writes)
    if isinstance(said, HybridSourceSpec) and said.may_repeat and replaced:
        return f"{said.guarantee}, which outputs that replace rows by their key do not show"
    return said.guarantee


def _keys(topic: TopicSpec) -> str | None:
    if topic.key_format == "text":
        return None
    return f"{topic.key_format}: {topic.key_type}" if topic.key_type else topic.key_format


def _tombstones(spec: PipelineSpec, role: TopicRole, shapes: Sequence[QueryShape]) -> str | None:
    """Say what a null value of a topic does; None where the query is not known yet."""
    sources = [source for shape in shapes for source in shape.sources]
    if any(source.changes for source in sources if source.topic == role.name):
        return "a record without a value deletes: its key is that of Kafka, of one column alone"
    if role.table:
        beside = ", and is skipped and counted as an event" if role.events else ""
        return f"a record without a value deletes the row of its key{beside}"
    if not role.dimension:
        if spec.topic(role.name).on_null == "row":
            return "a record without a value is a row of NULLs"
        return "a record without a value is skipped and counted"
    if not shapes:
        return None
    key = spec.topic(role.name).key
    joins = [
        join
        for shape in shapes
        for join in shape.joins
        if shape.source(join.alias).topic == role.name
    ]
    if any(len(join.keys) > 1 for join in joins):
        return "a record without a value is counted and ignored: the join key has several columns"
    own = {name.lower() for join in joins for _, name in join.keys[0].inner.uses}
    if key is not None and own != {key.lower()}:
        return f"a record without a value is counted and ignored: the Kafka key is '{key}'"
    return "a record without a value deletes the entry whose join key equals its Kafka key"


def source_rows(source: SourcePart) -> Iterator[tuple[str, str]]:
    """Yield where the records of a source come from, line by line."""
    yield "reads", source.about
    if source.pages_by is not None:
        yield "pages", f"by {source.pages_by}"
    if source.guarantee is not None:
        yield "guarantee", source.guarantee
    if source.journal is not None:
        yield "journal", f"{source.journal} below state.rocksdb.path"
