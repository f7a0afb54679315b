"""What a file knows of the positions that Streamling has in its topics."""

from collections.abc import Mapping
from typing import Literal

from kaflow_engine.model.brought.positions import PositionParams
from kaflow_engine.model.streamling.lowering.context import SETTINGS
from kaflow_engine.model.streamling.source_specs import KafkaSource
from kaflow_engine.model.streamling.topology import Graph

_TABLES: Mapping[str, Literal["postgres", "sqlite"]] = {"postgres": "postgres", "sqlite": "sqlite"}


def positions_of(graph: Graph, name: str, variables: Mapping[str, object]) -> PositionParams | None:
    """Return where positions stand; None: nowhere, or the file has no topics.

    Args:
        graph: The file.
        name: Of the pipeline.
        variables: `vars` of the configuration.
    """
    readers: dict[str, tuple[str, ...]] = {}
    for node in graph.nodes.values():
        if isinstance(node.spec, KafkaSource):
            readers[node.spec.topic] = (*readers.get(node.spec.topic, ()), node.name)
    backend = str(variables.get(f"{SETTINGS}state_backend.backend_type", ""))
    table = _TABLES.get(backend.lower())
    group = str(variables.get(f"{SETTINGS}kafka_source.consumer_group_id", "")) or None
    if not readers or (table is None and group is None):
        return None
    return PositionParams(
        readers=tuple(sorted(readers.items())),
        namespace=application_id(name, variables),
        table=table,
        group=group,
    )


def application_id(name: str, variables: Mapping[str, object]) -> str:
    """Return what the application is called, unless it is said: as the pipeline."""
    return str(variables.get(f"{SETTINGS}application_id", name))
