# confluent-kafka does not say what its futures give, nor that its admin names are public.
from collections.abc import Mapping, Sequence
from concurrent.futures import Future
from logging import Logger
from typing import Any

from confluent_kafka import ConsumerGroupTopicPartitions, TopicCollection, TopicPartition
from confluent_kafka.admin._acl import AclOperation as AclOperation
from confluent_kafka.admin._config import AlterConfigOpType as AlterConfigOpType
from confluent_kafka.admin._config import ConfigEntry as ConfigEntry
from confluent_kafka.admin._config import ConfigResource as ConfigResource
from confluent_kafka.admin._listoffsets import ListOffsetsResultInfo as ListOffsetsResultInfo
from confluent_kafka.admin._listoffsets import OffsetSpec as OffsetSpec
from confluent_kafka.admin._metadata import ClusterMetadata as ClusterMetadata
from confluent_kafka.admin._scram import ScramCredentialInfo as ScramCredentialInfo
from confluent_kafka.admin._scram import ScramMechanism as ScramMechanism
from confluent_kafka.admin._scram import (
    UserScramCredentialAlteration as UserScramCredentialAlteration,
)
from confluent_kafka.admin._scram import (
    UserScramCredentialUpsertion as UserScramCredentialUpsertion,
)
from confluent_kafka.cimpl import NewTopic as NewTopic

class AdminClient:
    def __init__(self, conf: Mapping[str, Any], *, logger: Logger | None = None) -> None: ...
    def alter_consumer_group_offsets(
        self,
        alter_consumer_group_offsets_request: Sequence[ConsumerGroupTopicPartitions],
        **options: Any,
    ) -> dict[str, Future[ConsumerGroupTopicPartitions]]: ...
    def list_consumer_group_offsets(
        self,
        list_consumer_group_offsets_request: Sequence[ConsumerGroupTopicPartitions],
        **options: Any,
    ) -> dict[str, Future[ConsumerGroupTopicPartitions]]: ...
    def delete_records(
        self, topic_partition_offsets: Sequence[TopicPartition], **options: Any
    ) -> dict[TopicPartition, Future[Any]]: ...
    def alter_user_scram_credentials(
        self, alterations: Sequence[UserScramCredentialAlteration], **options: Any
    ) -> dict[str, Future[None]]: ...
    def create_topics(
        self, new_topics: Sequence[NewTopic], **options: Any
    ) -> dict[str, Future[None]]: ...
    def delete_topics(self, topics: Sequence[str], **options: Any) -> dict[str, Future[None]]: ...
    def describe_configs(
        self, resources: Sequence[ConfigResource], **options: Any
    ) -> dict[ConfigResource, Future[Any]]: ...
    def describe_topics(
        self, topics: TopicCollection, **options: Any
    ) -> dict[str, Future[Any]]: ...
    def incremental_alter_configs(
        self, resources: Sequence[ConfigResource], **options: Any
    ) -> dict[ConfigResource, Future[None]]: ...
    def list_offsets(
        self, topic_partition_offsets: Mapping[TopicPartition, OffsetSpec], **options: Any
    ) -> dict[TopicPartition, Future[ListOffsetsResultInfo]]: ...
    def list_topics(self, topic: str | None = None, timeout: float = -1) -> ClusterMetadata: ...
    def poll(self, timeout: float = -1) -> int: ...
