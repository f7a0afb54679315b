"""Pipelines that read what others write: their order, and the columns between them."""

from collections.abc import Iterable, Mapping, Sequence
from graphlib import CycleError, TopologicalSorter

from kaflow_engine.errors import ModelError
from kaflow_engine.flow.graph import output_columns
from kaflow_engine.formats.contract import format_of
from kaflow_engine.model.columns import Column
from kaflow_engine.model.config import Config, topic_format
from kaflow_engine.model.specs import PipelineSpec
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
        spec.name: [other.name for topic in _topics(spec) for other in writers.get(topic, ())]
        for spec in specs
    }


def circles(specs: Sequence[PipelineSpec]) -> list[list[str]]:
    """Return the names of pipelines that feed each other, each before those that read it; the
    first one stands at the end again.
    """
    graph = {name: list(dict.fromkeys(writers)) for name, writers in feeds(specs).items()}
    found: list[list[str]] = []
    while True:
        try:
            TopologicalSorter(graph).prepare()
        except CycleError as error:
            names: list[str] = error.args[1]
            found.append(names)
            graph[names[-1]].remove(names[-2])  # so that the next one is found
        else:
            return found


def connected(specs: Sequence[PipelineSpec], config: Config) -> tuple[PipelineSpec, ...]:
    """Declare topics that a pipeline reads and another one writes, where no one has done it.

    Args:
        specs: The pipelines of a project, right as far as their form goes.
        config: For defaults.
    """
    writers = _writers(specs)
    read = {topic for spec in specs for topic in _topics(spec)}
    written: dict[str, tuple[Column, ...]] = {}
    done: dict[str, PipelineSpec] = {}
    for spec in producers_first(specs):
        done[spec.name] = _connected(spec, writers, written)
        topic = spec.output.topic
        if topic is not None and topic in read and len(writers[topic]) == 1:
            columns = _output(done[spec.name], config)
            if columns is not None:
                written[topic] = columns
    return tuple(done[spec.name] for spec in specs)


def _connected(
    spec: PipelineSpec,
    writers: Mapping[str, Sequence[PipelineSpec]],
    written: Mapping[str, tuple[Column, ...]],
) -> PipelineSpec:
    found = dict(spec.topics)
    for topic in _topics(spec):
        others = [other for other in writers.get(topic, ()) if other.name != spec.name]
        if not others:
            continue
        own = spec.topic(topic)
        change: dict[str, object] = {}
        if own.format is None:
            change["format"] = others[0].output.format
        if own.columns is None and topic in written:
            change["columns"] = {column.name: column.type for column in written[topic]}
        if change:
            found[topic] = own.model_copy(update=change)
    return spec.model_copy(update={"topics": found})


def _output(spec: PipelineSpec, config: Config) -> tuple[Column, ...] | None:
    """Return the columns of a pipeline's rows; None where the schema registry has them."""
    try:
        if format_of(spec.output.format).traits.registered:
            return None
        schemas = {topic: declared_columns(spec, topic) for topic in _topics(spec)}
        known = {topic: columns for topic, columns in schemas.items() if columns is not None}
        if len(known) < len(schemas) or any(
            format_of(topic_format(spec, config, topic)).traits.registered for topic in schemas
        ):
            return None
        plan = build_plan(spec, config, known).plan
    except ModelError:
        return None  # it is told where that pipeline is checked
    return output_columns(plan)


def _writers(specs: Sequence[PipelineSpec]) -> dict[str, list[PipelineSpec]]:
    found: dict[str, list[PipelineSpec]] = {}
    for spec in specs:
        if spec.output.topic is not None:
            found.setdefault(spec.output.topic, []).append(spec)
    return found


def _topics(spec: PipelineSpec) -> Iterable[str]:
    try:
        return pipeline_topics(spec)
    except ModelError:
        return ()
