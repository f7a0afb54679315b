"""Labels of metrics: which of them a kind of node has of its own."""

from collections.abc import Iterator, Mapping

from kaflow_engine.errors import ModelError
from kaflow_engine.model.files.tree import brief
from kaflow_engine.model.streamling.node_specs import PluginNodeSpec
from kaflow_engine.model.streamling.topology import Graph, Node

_OWN: Mapping[str, tuple[str, ...]] = {
    "kafka": ("topic",),
    "hybrid": ("table", "topic"),
    "clickhouse": ("table",),
    "postgres": ("table",),
    "postgres_aggregate": ("table",),
    "webhook": ("url",),
    "handler": ("url",),
    "script": ("language",),
}


def wrong_labels(graph: Graph) -> Iterator[ModelError]:
    """Yield an error for each label that the metrics of its node have already."""
    for node in (*graph.nodes.values(), *graph.sinks):
        for name in node.spec.telemetry.labels:
            if name in _reserved(node):
                yield ModelError(
                    f"metrics of '{brief(node.name)}' have a label '{name}' of their own",
                    node.place("telemetry", "labels", name),
                    "rename it",
                )


def _reserved(node: Node) -> tuple[str, ...]:
    if isinstance(node.spec, PluginNodeSpec):
        return ("type",)
    return _OWN.get(node.spec.type, ())
