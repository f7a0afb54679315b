"""Sources in phases as a kind of source."""

import json
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from kaflow_engine.connectors.sources.contract import SourcePlace
from kaflow_engine.connectors.sources.kinds import source_kind
from kaflow_engine.errors import SourceUnfit
from kaflow_engine.flow.origins.hybrid import HybridParams
from kaflow_engine.formats.contract import Evidence, Format
from kaflow_engine.model.columns import Column

if TYPE_CHECKING:
    from kaflow_engine.connectors.hybrid.source import HybridSource
    from kaflow_engine.connectors.kafka.client import KafkaSettings


class HybridKind:
    """Opens phases, and the topic that follows them."""

    def open(self, params: HybridParams, place: SourcePlace) -> "HybridSource":
        """Open all phases; none is read yet."""
        from kaflow_engine.connectors.hybrid.source import HybridSource

        registry = _registry(params, place.connection)
        return HybridSource(
            params,
            place,
            connections=_connections(place.connection),
            kafka=_kafka(place.connection) if params.topic is not None else None,
            registry=registry,
        )

    def check(self, params: HybridParams, connection: Mapping[str, str]) -> None:
        """Look at the phases: each must have all columns; and at the topic."""
        from kaflow_engine.connectors.hybrid.handover import require_handover
        from kaflow_engine.connectors.kafka.source import TopicSource

        connections = _connections(connection)
        for number, phase in enumerate(params.phases):
            source_kind(phase.type).check(phase, connections[number])
        if params.topic is not None:
            require_handover(params, connections[-1])
            _registry(params, connection)
            TopicSource(_kafka(connection), params.topic).partitions()

    def sample(
        self, params: HybridParams, form: Format, connection: Mapping[str, str]
    ) -> tuple[Column, ...] | None:
        """Return the fields of the topic's newest schema, where no columns are declared: tables in
        front of it must have them all."""
        from kaflow_engine.formats.avro.format import AvroFormat
        from kaflow_engine.formats.schema_registry import Registry

        latest = Registry(url=_address(params, connection)).latest(f"{params.topic}-value")
        schema = None if latest is None else Evidence.of_schema(latest.schema)
        found = None if schema is None else AvroFormat().columns(schema)
        if found is not None:
            self.check(params.with_columns(found), connection)
        return found


def _connections(reached: Mapping[str, str]) -> list[Mapping[str, str]]:
    """Return how each phase is reached, in their order."""
    found: dict[str, Mapping[str, str]] = json.loads(reached["phases"])
    return [found[str(number)] for number in range(len(found))]


def _registry(params: HybridParams, reached: Mapping[str, str]) -> str:
    """Return the address of the registry; empty: none is needed."""
    return _address(params, reached) if params.avro else ""


def _address(params: HybridParams, reached: Mapping[str, str]) -> str:
    if not reached.get("registry"):
        raise SourceUnfit(
            f"topic '{params.topic}' behind phases is Avro, and there is no schema registry",
            hint="set kafka.schemaRegistry in the configuration",
        )
    return reached["registry"]


def _kafka(reached: Mapping[str, str]) -> "KafkaSettings":
    from kaflow_engine.connectors.kafka.client import KafkaSettings

    said: dict[str, Any] = json.loads(reached["kafka"])
    return KafkaSettings(
        brokers=tuple(said["brokers"]),
        properties=tuple((name, value) for name, value in said["properties"]),
        transaction_timeout=said["transaction_timeout"],
        cluster=said["cluster"],
    )
