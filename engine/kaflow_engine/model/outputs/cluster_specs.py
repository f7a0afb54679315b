"""Clusters of Kafka, each with its schema registry, as the configuration names them."""

import re
from collections.abc import Mapping
from typing import Annotated, Literal

from pydantic import AfterValidator, BeforeValidator, Field

from kaflow_engine.model.durations import Duration, format_duration
from kaflow_engine.model.names import ClusterName, Filled, is_address, refuse, split_names
from kaflow_engine.model.spec import Spec

_BROKER = re.compile(r"(?:[A-Z_]+://)?(?:\[[0-9A-Fa-f:.%]+\]|[^\s,:/]+):[0-9]{1,5}")

SHORTEST, LONGEST = 1_000, 86_400_000
"""Between these milliseconds a transaction may take; Kafka's clients take no less."""


def _broker(broker: str) -> str:
    if not _BROKER.fullmatch(broker):
        raise refuse("{value} is not a broker", "write host:port, such as localhost:9092")
    return broker


def _some(brokers: tuple[str, ...]) -> tuple[str, ...]:
    if not brokers:
        raise refuse("must name a broker", "write host:port, such as localhost:9092")
    return brokers


def _url(text: str) -> str:
    if not all(is_address(url.strip()) for url in text.split(",")):
        raise refuse("is not a URL", "write it as http://host:port or https://host:port")
    return text


def _transaction_timeout(milliseconds: int) -> int:
    if not SHORTEST <= milliseconds <= LONGEST:
        shortest, longest = format_duration(SHORTEST), format_duration(LONGEST)
        raise refuse(
            f"must be between {shortest} and {longest}",
            "the brokers' own limit is 'transaction.max.timeout.ms', 15m unless they say otherwise",
        )
    return milliseconds


Url = Annotated[Filled, AfterValidator(_url)]
Brokers = Annotated[
    tuple[Annotated[str, AfterValidator(_broker)], ...],
    BeforeValidator(split_names),
    AfterValidator(_some),
]


class ConsumerConfig(Spec):
    """How input topics are read."""

    group: Filled | None = None
    """Consumer group that offsets are reported to; None: `kaflow-<pipeline>`."""
    auto_offset_reset: Literal["earliest", "latest"] = Field(
        default="earliest", alias="autoOffsetReset"
    )


class ClusterConfig(Spec):
    """A cluster of Kafka and its schema registry, each with its login."""

    brokers: Brokers
    schema_registry: Url | None = Field(default=None, alias="schemaRegistry", repr=False)
    replication_factor: int | None = Field(default=None, gt=0)
    """Of topics that kaflow creates; None: the brokers' default, for topics of its own 3 where
    there are three brokers."""
    min_insync_replicas: int | None = Field(default=None, gt=0)
    """The same for their `min.insync.replicas`; of its own 2."""
    transaction_timeout: Annotated[Duration, AfterValidator(_transaction_timeout)] = 60_000
    """After which the brokers abort a transaction; how long rows are gathered for one, and waited
    for, follows from it."""
    properties: dict[str, str] = Field(default={}, repr=False)
    """Client settings passed through, such as `security.protocol`."""


class KafkaConfig(ClusterConfig):
    """The Kafka cluster of topics that name none, and others by their names."""

    brokers: Brokers = ("localhost:9092",)
    use_avro: bool = Field(default=False, alias="useAvro")
    """Input topics that do not say their format are Avro instead of JSON."""
    consumer: ConsumerConfig = ConsumerConfig()
    clusters: dict[ClusterName, ClusterConfig] = Field(default={})
    """Others, which topics name by `cluster`."""

    @property
    def every(self) -> Mapping[str, ClusterConfig]:
        """All clusters by name; that of topics which name none has an empty one."""
        return {"": self, **self.clusters}


def section_of(cluster: str) -> str:
    """Return where the settings of a cluster stand in the configuration.

    >>> section_of(""), section_of("west")
    ('kafka', 'kafka.clusters.west')
    """
    return f"kafka.clusters.{cluster}" if cluster else "kafka"
