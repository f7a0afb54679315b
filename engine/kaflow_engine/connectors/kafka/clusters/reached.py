"""The clusters of a configuration as they are reached: brokers, and the registry of each."""

from collections.abc import Mapping
from dataclasses import dataclass

from kaflow_engine.connectors.kafka.client import KafkaSettings
from kaflow_engine.connectors.kafka.replication import Replication
from kaflow_engine.formats.schema_registry import Registry
from kaflow_engine.model.config import Config
from kaflow_engine.model.outputs.cluster_specs import section_of

_REGISTRY_PATIENCE_S = 30.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Reached:
    """A cluster."""

    kafka: KafkaSettings
    registry: Registry | None
    """None: the configuration names none."""
    replication: Replication
    """Of topics that are created there."""


Clusters = Mapping[str, Reached]
"""By name; that of topics which name none has an empty one."""


def reached(config: Config) -> Clusters:
    """Return the clusters of a configuration."""
    return {
        name: Reached(
            kafka=KafkaSettings.configured(cluster, name),
            registry=registry_of(config, name),
            replication=Replication.of(cluster),
        )
        for name, cluster in config.kafka.every.items()
    }


def registry_of(config: Config, cluster: str = "") -> Registry | None:
    """Return the schema registry of a cluster, None if the configuration names none."""
    url = config.kafka.every[cluster].schema_registry
    patience = min(_REGISTRY_PATIENCE_S, config.retry_deadline / 1000)
    return Registry(url=url, patience=patience) if url else None


def registry_key(cluster: str) -> str:
    """Return the setting that names the registry of a cluster."""
    return f"{section_of(cluster)}.schemaRegistry"
