"""Labels of metrics: those that a kind of node has of its own."""

from collections.abc import Iterator, Mapping

from kaflow_engine.errors import ModelError
from kaflow_engine.model.files.tree import brief
from kaflow_engine.model.streamling.node_specs import NodeSpec, PluginNodeSpec
from kaflow_engine.model.streamling.source_specs import ClickHouseSource, HybridSource
from kaflow_engine.model.streamling.specs import (
    PostgresAggregateSink,
    PostgresSink,
)
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


def own_labels(node: Node) -> dict[str, str]:
    """Return the labels that metrics of a node have because of its kind."""
    return {name: _value(node.spec, name) for name in _reserved(node)}


def _reserved(node: Node) -> tuple[str, ...]:
    if isinstance(node.spec, PluginNodeSpec):
        return ("type",)
    return _OWN.get(node.spec.type, ())


def _value(spec: NodeSpec, name: str) -> str:
    match spec:
        case HybridSource() if name == "topic":
            return spec.unbounded_source.topic if spec.unbounded_source else ""
        case HybridSource():
            return ",".join(each.table_name for each in spec.bounded_sources)
        case ClickHouseSource():
            return spec.table_name
        case PostgresSink():
            return f"{spec.schema_}.{spec.table}"
        case PostgresAggregateSink():
            return f"{spec.schema_}.{spec.agg_table}"
        case _:
            return str(getattr(spec, name))
