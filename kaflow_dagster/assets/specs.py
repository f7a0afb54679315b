"""All assets of a project: its topics, and the streams between them."""

from collections.abc import Iterable, Sequence
from graphlib import CycleError, TopologicalSorter
from itertools import pairwise

import dagster as dg

from kaflow_dagster.assets.groups import MISTAKES, topic_group
from kaflow_dagster.assets.props import (
    SinkProps,
    SourceProps,
    StreamProps,
    TableProps,
    TopicProps,
)
from kaflow_dagster.assets.translator import KaflowTranslator
from kaflow_dagster.assets.views import PipelineView, ProjectView
from kaflow_engine.api.plan import TopicPart


def build_kaflow_specs(
    project: ProjectView, translator: KaflowTranslator | None = None
) -> list[dg.AssetSpec]:
    """Return the assets of a project that Dagster does not make itself: topics, streams, and what
    streams write elsewhere.

    Tables are made by their backfills, too. Mistakes between files are an asset.
    """
    translate = translator or KaflowTranslator()
    topics = [translate.get_asset_spec(topic) for topic in topics_of(project.pipelines)]
    streams = [translate.get_asset_spec(StreamProps(pipeline=p)) for p in project.pipelines]
    outside = [*sources_of(project.pipelines), *sinks_of(project.pipelines)]
    others = [translate.get_asset_spec(each) for each in outside]
    return [*_without_rings(topics, streams), *others, *_mistakes(project.problems)]


def _without_rings(
    topics: Sequence[dg.AssetSpec], streams: Sequence[dg.AssetSpec]
) -> list[dg.AssetSpec]:
    """Leave one topic out of what a stream reads, where streams feed each other, and out of what
    an output is made of: Dagster draws no rings, and loads nothing that holds one.
    """
    specs = {spec.key: spec for spec in (*topics, *streams)}
    makers = {spec.key for spec in streams}
    while True:
        graph = {key: [dep.asset_key for dep in spec.deps] for key, spec in specs.items()}
        try:
            TopologicalSorter(graph).prepare()
        except CycleError as error:
            ring: list[dg.AssetKey] = error.args[1]
            topic, reader = next(pair for pair in pairwise(ring) if pair[0] not in makers)
            spec = specs[reader]
            specs[reader] = spec.replace_attributes(
                deps=[dep for dep in spec.deps if dep.asset_key != topic],
                description=f"{spec.description or ''}\n\nIt reads `{topic.path[-1]}` too, in a "
                "ring of pipelines that feed each other.",
            )
        else:
            return list(specs.values())


def _mistakes(problems: Sequence[str]) -> list[dg.AssetSpec]:
    if not problems:
        return []
    about = "\n".join(problems)
    key = dg.AssetKey(["kaflow", "mistakes"])
    return [dg.AssetSpec(key=key, group_name=MISTAKES, description=f"BROKEN: {about}")]


def tables_of(pipelines: Iterable[PipelineView]) -> list[TableProps]:
    """Return the tables that pipelines write."""
    return [
        TableProps(output=output)
        for view in pipelines
        for output in view.written
        if output.part.table is not None
    ]


def sinks_of(pipelines: Iterable[PipelineView]) -> list[SinkProps]:
    """Return what pipelines write to sinks that files name."""
    return [
        SinkProps(output=output)
        for view in pipelines
        for output in view.written
        if output.part.sink is not None
    ]


def sources_of(pipelines: Iterable[PipelineView]) -> list[SourceProps]:
    """Return what pipelines read that is no topic."""
    return [
        SourceProps(pipeline=view, topic=topic)
        for view in pipelines
        if view.explanation is not None
        for topic in view.explanation.topics
        if topic.source is not None
    ]


def topics_of(pipelines: Iterable[PipelineView]) -> list[TopicProps]:
    """Return every topic that pipelines read or write, with its cluster in front of it."""
    sound = [(view, view.explanation) for view in pipelines if view.explanation is not None]
    outputs = {
        output.part.target: output
        for view, _ in sound
        for output in view.written
        if output.part.topic is not None
    }
    dead = {each.dead_letters: view for view, each in sound if each.dead_letters is not None}
    reads: dict[str, list[TopicPart]] = {}
    readers: dict[str, list[str]] = {}
    said: dict[str, str] = {}
    for view, explained in sound:
        for topic in (each for each in explained.topics if each.source is None):
            reads.setdefault(topic.target, []).append(topic)
            readers.setdefault(topic.target, []).append(view.asset_group)
            if topic.name in view.topics:
                said.setdefault(topic.target, view.topics[topic.name])
    return [
        TopicProps(
            name=name,
            group=topic_group(readers.get(name, ())),
            description=said.get(name, ""),
            columns=next((part.columns for part in reads.get(name, ()) if part.columns), ()),
            history=next((part.history for part in reads.get(name, ()) if part.history), None),
            output=outputs.get(name),
            dead_letters_of=None if name in outputs else dead.get(name),
        )
        for name in sorted({*outputs, *dead, *reads})
    ]
