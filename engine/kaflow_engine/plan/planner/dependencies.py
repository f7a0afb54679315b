"""Pipelines that read what others write: their order, and the columns between them."""

from collections.abc import Collection, Mapping, Sequence
from graphlib import CycleError, TopologicalSorter
from itertools import pairwise

from kaflow_engine.errors import ModelError
from kaflow_engine.flow.graph import columns_of, topic_sinks
from kaflow_engine.formats.contract import format_of
from kaflow_engine.model.columns import Column
from kaflow_engine.model.config import Config, topic_format
from kaflow_engine.model.outputs.output_specs import Write
from kaflow_engine.model.specs import PipelineSpec
from kaflow_engine.plan.planner.inputs.kafka_topics import kafka_topics
from kaflow_engine.plan.planner.pipeline_plan import build_plan, declared_columns
from kaflow_engine.sql.pipeline import pipeline_topics


def producers_first(specs: Sequence[PipelineSpec]) -> list[PipelineSpec]:
    """Put a pipeline that writes a topic before those that read it, where that is possible."""
    by_name = {spec.name: spec for spec in specs}
    try:
        return [by_name[name] for name in TopologicalSorter(feeds(specs)).static_order()]
    except CycleError:
        return list(specs)


def feeds(specs: Sequence[PipelineSpec]) -> dict[str, list[str]]:
    """Return for each pipeline those that write a topic it reads, by name."""
    writers = _writers(specs)
    return {
        spec.name: [other.name for topic in _read(spec) for other, _ in writers.get(topic, ())]
        for spec in specs
    }


def circles(specs: Sequence[PipelineSpec]) -> list[list[tuple[PipelineSpec, Write]]]:
    """Return pipelines that feed each other, each with the output that the next one reads; the
    first one reads that of the last.
    """
    by_name = {spec.name: spec for spec in specs}
    graph = {name: list(dict.fromkeys(writers)) for name, writers in feeds(specs).items()}
    found: list[list[tuple[PipelineSpec, Write]]] = []
    while True:
        try:
            TopologicalSorter(graph).prepare()
        except CycleError as error:
            names: list[str] = error.args[1]
            ring = [(by_name[name], by_name[reader]) for name, reader in pairwise(names)]
            found.append([(spec, _read_by(spec, reader)) for spec, reader in ring])
            graph[names[-1]].remove(names[-2])  # so that the next one is found
        else:
            return found


def _read_by(spec: PipelineSpec, reader: PipelineSpec) -> Write:
    """Return the first output of a pipeline that another one reads."""
    read = _read(reader)
    return next(write for write in _topics_of(spec) if write.target in read)


def connected(specs: Sequence[PipelineSpec], config: Config) -> tuple[PipelineSpec, ...]:
    """Declare topics that a pipeline reads and another one writes, where no one has done it.

    Args:
        specs: The pipelines of a project, right as far as their form goes.
        config: For defaults.
    """
    writers = _writers(specs)
    read = {target for spec in specs for target in _read(spec)}
    one_writer = {topic for topic, found in writers.items() if len(found) == 1}
    written: dict[str, tuple[Column, ...]] = {}
    done: dict[str, PipelineSpec] = {}
    for spec in producers_first(specs):
        done[spec.name] = _connected(spec, writers, written)
        written |= _written(done[spec.name], config, read & one_writer)
    return tuple(done[spec.name] for spec in specs)


def _connected(
    spec: PipelineSpec,
    writers: Mapping[str, Sequence[tuple[PipelineSpec, Write]]],
    written: Mapping[str, tuple[Column, ...]],
) -> PipelineSpec:
    found = dict(spec.topics)
    for target, topic in _read(spec).items():
        others = [write for other, write in writers.get(target, ()) if other.name != spec.name]
        if not others:
            continue
        own = spec.topic(topic)
        change: dict[str, object] = {}
        if own.format is None:
            change["format"] = others[0].output.format
        if own.columns is None and target in written:
            change["columns"] = {column.name: column.type for column in written[target]}
        if change:
            found[topic] = own.model_copy(update=change)
    return spec.model_copy(update={"topics": found})


def _written(
    spec: PipelineSpec, config: Config, wanted: Collection[str]
) -> dict[str, tuple[Column, ...]]:
    """Return the columns of the topics that a pipeline writes and others want to know, save where
    the schema registry has them.
    """
    try:
        outputs = [write.output for write in _topics_of(spec) if write.target in wanted]
        if all(format_of(output.format).traits.registered for output in outputs):
            return {}
        schemas = {name: declared_columns(spec, name) for name in pipeline_topics(spec)}
        known = {topic: columns for topic, columns in schemas.items() if columns is not None}
        if len(known) < len(schemas) or any(
            format_of(topic_format(spec, config, topic)).traits.registered for topic in schemas
        ):
            return {}
        plan = build_plan(spec, config, known).plan
    except ModelError:
        return {}  # it is reported where that pipeline is checked
    return {
        sink.target: columns_of(plan, sink)
        for sink in topic_sinks(plan)
        if sink.target in wanted and not format_of(sink.format).traits.registered
    }


def _writers(
    specs: Sequence[PipelineSpec],
) -> dict[str, list[tuple[PipelineSpec, Write]]]:
    found: dict[str, list[tuple[PipelineSpec, Write]]] = {}
    for spec in specs:
        for write in _topics_of(spec):
            found.setdefault(write.target, []).append((spec, write))
    return found


def _topics_of(spec: PipelineSpec) -> list[Write]:
    """Return the outputs of a pipeline that are topics."""
    return [write for write in spec.writes if write.output.topic is not None]


def _read(spec: PipelineSpec) -> dict[str, str]:
    """Return the topics that a pipeline reads, each as it is called where it is written, with what
    the pipeline calls it."""
    try:
        return {spec.target_of(name): name for name in kafka_topics(spec)}
    except ModelError:
        return {}
