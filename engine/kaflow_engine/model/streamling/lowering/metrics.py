"""Nodes of a file → what their metrics are called, and where their rows are counted."""

import re
from collections.abc import Iterable, Iterator, Mapping

from kaflow_engine.model.brought.nodes import Counted, FileMetrics, Kind, NodeMetrics
from kaflow_engine.model.streamling.labels import own_labels
from kaflow_engine.model.streamling.lowering.context import SETTINGS, Lowering
from kaflow_engine.model.streamling.lowering.positions import application_id
from kaflow_engine.model.streamling.specs import DynamicTable, PostgresAggregateSink, SqlTransform
from kaflow_engine.model.streamling.topology import Node

PREFIX = "streamling_"


def file_metrics(
    work: Lowering, targets: Iterable[str], name: str, variables: Mapping[str, object]
) -> FileMetrics:
    """Return what metrics a file asks for.

    Args:
        work: The file, lowered.
        targets: What the outputs of its sinks are called, in their order.
        name: Of the pipeline.
        variables: `vars` of the configuration.
    """
    instance = application_id(name, variables)
    tags = str(variables.get(f"{SETTINGS}open_telemetry_metrics.global_tags", ""))
    # Behind those of sinks there may be outputs of landing tables.
    written = dict(zip((node.name for node in work.graph.sinks), targets, strict=False))
    return FileMetrics(
        prefix=PREFIX,
        nodes=tuple(
            NodeMetrics(
                labels={
                    **dict(_tags(tags)),
                    "id": node.name,
                    "topology_node_type": node.section.removesuffix("s"),
                    "operator_type": node.spec.type,
                    "service_instance_id": instance,
                    **own_labels(node),
                    **node.spec.telemetry.labels,
                },
                kind=_kind(node),
                rows=_rows(work, node, written),
            )
            for node in (*work.graph.nodes.values(), *work.graph.sinks)
        ),
    )


def _tags(text: str) -> Iterator[tuple[str, str]]:
    """Yield labels of `name:value,…`; what names of labels cannot have becomes `_`."""
    for tag in text.split(","):
        name, colon, value = tag.strip().partition(":")
        if colon and name:
            yield re.sub(r"^(?=\d)|\W", "_", name, flags=re.ASCII), value


def _kind(node: Node) -> Kind:
    if isinstance(node.spec, SqlTransform | DynamicTable):
        return "query"
    kinds: dict[str, Kind] = {"sources": "source", "transforms": "transform", "sinks": "sink"}
    return kinds[node.section]


def _rows(work: Lowering, node: Node, written: dict[str, str]) -> Counted | None:
    match _kind(node):
        case "source":
            return Counted(kind="source", name=work.read[node.name])
        case "transform":
            return Counted(kind="transform", name=work.called[node.name])
        case "sink":
            return Counted(kind="sink", name=written[node.name], coming_in=True)
        case "query":
            return _of_reader(work, node, written)


def _of_reader(work: Lowering, node: Node, written: dict[str, str]) -> Counted | None:
    """Queries that read each other are one, whose rows are counted as they come into what reads
    them."""
    for reader in work.graph.readers(node.name):
        if node.name not in reader.reads or isinstance(reader.spec, PostgresAggregateSink):
            continue
        match _kind(reader):
            case "transform":
                name = work.called[reader.name]
                return Counted(kind="transform", name=name, coming_in=True)
            case "sink":
                return Counted(kind="sink", name=written[reader.name], coming_in=True)
            case _:
                continue
    return None
