"""A Streamling file → the tree that a pipeline file would have, and the pipeline."""

from collections.abc import Mapping
from dataclasses import replace

from kaflow_engine.errors import Location, ModelError
from kaflow_engine.model.brought.settings import Brought
from kaflow_engine.model.files.reading import build, check_keys
from kaflow_engine.model.files.shapes import Shape
from kaflow_engine.model.files.tree import Entries, describe
from kaflow_engine.model.files.yaml_file import Document, in_order
from kaflow_engine.model.pipelines.loader import Reading, read_pipeline
from kaflow_engine.model.streamling.kinds import typed
from kaflow_engine.model.streamling.labels import wrong_labels
from kaflow_engine.model.streamling.lowering.context import Lowering, Settings
from kaflow_engine.model.streamling.lowering.metrics import file_metrics
from kaflow_engine.model.streamling.lowering.parts import Parts
from kaflow_engine.model.streamling.lowering.positions import positions_of
from kaflow_engine.model.streamling.lowering.side_outputs import lower_side_outputs
from kaflow_engine.model.streamling.lowering.sinks import lower_sink
from kaflow_engine.model.streamling.lowering.sources import lower_source
from kaflow_engine.model.streamling.lowering.transforms import lower_transform
from kaflow_engine.model.streamling.operations import rows_of
from kaflow_engine.model.streamling.source_specs import KafkaSource
from kaflow_engine.model.streamling.specs import (
    ClickHouseSink,
    DynamicTable,
    KafkaSink,
    Topology,
)
from kaflow_engine.model.streamling.topology import Graph, graph_of

SHAPE = Shape(
    noun="key",
    later={
        KafkaSource: frozenset(
            {
                "schema_id_overrides",
                "skip_schema_resolution",
                "skip_schema_resolution_for_reader_schema_ids",
                "validate_writer_schema_ordering",
            }
        ),
        ClickHouseSink: frozenset({"schema_override"}),
        DynamicTable: frozenset({"cache", "time_column"}),
        KafkaSink: frozenset({"compression", "message_max_bytes"}),
    },
)


def read_streamling(document: Document, name: str, variables: Mapping[str, object]) -> Reading:
    """Read a file as far as it can be read.

    Args:
        document: The file.
        name: What the pipeline is called.
        variables: `vars` of the configuration.
    """
    root = document.root
    if not isinstance(root, Entries):
        wrong = ModelError(
            f"expected a mapping, found {describe(root)}",
            root.at,
            "a file has sources, transforms and sinks",
        )
        return Reading(at=root.at, name=name, mistakes=in_order([wrong]))
    at = root.entries[0].at if root.entries else root.at
    known = typed(root)
    checked = check_keys(known.tree, Topology, SHAPE)
    built = build(checked.tree, Topology, SHAPE, {})
    mistakes = [*document.mistakes, *known.mistakes, *checked.mistakes]
    if not isinstance(built, Topology):
        return Reading(at=at, name=name, mistakes=in_order([*mistakes, *built]))
    if known.mistakes:
        return Reading(at=at, name=name, mistakes=in_order(mistakes))
    assert isinstance(checked.tree, Entries)
    graph = graph_of(built, checked.tree)
    mistakes += [*graph.mistakes, *wrong_labels(graph)]
    if mistakes:
        return Reading(at=at, name=name, mistakes=in_order(mistakes))
    work = _lowered(graph, Settings.of(variables))
    if work.parts.mistakes:
        return Reading(at=at, name=name, mistakes=in_order(work.parts.mistakes))
    return _pipeline(work, name, at, variables)


def _lowered(graph: Graph, settings: Settings) -> Lowering:
    topics = {
        node.spec.topic
        for node in (*graph.nodes.values(), *graph.sinks)
        if isinstance(node.spec, KafkaSource | KafkaSink)
    }
    work = Lowering(
        graph=graph,
        rows=rows_of(graph, job=settings.job_mode),
        settings=settings,
        parts=Parts(taken=topics),
    )
    for node in graph.nodes.values():
        (lower_source if node.section == "sources" else lower_transform)(work, node)
    for node in graph.sinks:
        if node.reads[0] in work.called:
            lower_sink(work, node)
    if settings.side_outputs:
        for node in graph.nodes.values():
            if node.section == "sources" and node.name in work.called:
                lower_side_outputs(work, node)
    for node in (*graph.nodes.values(), *graph.sinks):
        for label, value in node.spec.telemetry.labels.items():
            work.parts.meta[f"{node.name}.{label}"] = value
    return work


def _pipeline(work: Lowering, name: str, at: Location, variables: Mapping[str, object]) -> Reading:
    parts = work.parts
    reading = read_pipeline(Document(root=parts.tree(name, at), mistakes=()))
    spec = reading.spec
    if spec is not None:
        found = {
            relation: said.model_copy(update={"adds": parts.adds[relation]})
            if relation in parts.adds
            else said
            for relation, said in spec.relations.items()
        }
        targets = [write.target for write in spec.writes]
        metrics = file_metrics(work, targets, name, variables)
        brought = Brought(settings=tuple(parts.settings.values()))
        changes = {
            "relations": found,
            "file_metrics": metrics,
            "brought": brought,
            "positions": positions_of(work.graph, name, variables),
        }
        spec = spec.model_copy(update=changes)
    return replace(reading, at=at, name=name, spec=spec)
