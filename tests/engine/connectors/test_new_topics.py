"""What topics get that are created: of the author, of the configuration, and of their rows."""

import pytest

from kaflow_engine.connectors.kafka.output.topics import NewTopic, new_topics
from kaflow_engine.connectors.kafka.replication import Replication
from kaflow_engine.model.outputs.new_topic import NewTopicSpec

CONFIGURED = Replication(factor=3, in_sync=2)


@pytest.mark.parametrize(
    ("said", "compacted", "expected"),
    [
        ({}, False, NewTopic(partitions=4, replication=CONFIGURED)),
        ({"partitions": 9}, False, NewTopic(partitions=9, replication=CONFIGURED)),
        (
            {"replication_factor": 1},
            False,
            NewTopic(partitions=4, replication=Replication(factor=1, in_sync=1)),
        ),
        (
            {"config": {"retention.ms": "1000"}},
            True,
            NewTopic(
                partitions=4,
                replication=CONFIGURED,
                config={"cleanup.policy": "compact", "retention.ms": "1000"},
            ),
        ),
        (
            {"config": {"cleanup.policy": "compact,delete"}},
            True,
            NewTopic(
                partitions=4, replication=CONFIGURED, config={"cleanup.policy": "compact,delete"}
            ),
        ),
    ],
)
def test_new_topic(said: dict[str, object], compacted: bool, expected: NewTopic) -> None:
    spec = {"o": NewTopicSpec.model_validate(said)}
    found = new_topics({"o": 4, "d": 2}, spec, CONFIGURED, ["o"] if compacted else [])
    assert found == {"o": expected, "d": NewTopic(partitions=2, replication=CONFIGURED)}
