"""How often topics are kept: what brokers are asked for, and what is said of topics there are."""

from types import SimpleNamespace
from typing import Any

import pytest

from kaflow_engine.connectors.kafka import replication
from kaflow_engine.connectors.kafka.client import KafkaSettings
from kaflow_engine.connectors.kafka.replication import (
    Copies,
    Replication,
    create_kept,
    warn_of_single_copies,
    warning,
)
from kaflow_engine.connectors.kafka.topics import TopicFacts

KAFKA = KafkaSettings(("broker:9092",))


@pytest.mark.parametrize(
    ("brokers", "wanted", "asked"),
    [
        (1, Replication(), (-1, {"a": "b"})),
        (2, Replication(), (-1, {"a": "b"})),
        (3, Replication(), (3, {"a": "b", "min.insync.replicas": "2"})),
        (9, Replication(), (3, {"a": "b", "min.insync.replicas": "2"})),
        (3, Replication(factor=1), (1, {"a": "b", "min.insync.replicas": "1"})),
        (5, Replication(factor=5), (5, {"a": "b", "min.insync.replicas": "2"})),
        (5, Replication(factor=5, in_sync=3), (5, {"a": "b", "min.insync.replicas": "3"})),
        (3, Replication(in_sync=3), (3, {"a": "b", "min.insync.replicas": "3"})),
        (1, Replication(factor=2, in_sync=1), (2, {"a": "b", "min.insync.replicas": "1"})),
    ],
)
def test_what_is_asked_for_a_topic_that_rows_depend_on(
    monkeypatch: pytest.MonkeyPatch,
    brokers: int,
    wanted: Replication,
    asked: tuple[int, dict[str, str]],
) -> None:
    created: list[Any] = []

    def create(kafka: Any, topic: str, partitions: int, config: Any, factor: int, *_: Any) -> bool:
        created.append((topic, partitions, factor, config))
        return True

    monkeypatch.setattr(replication, "create_topic", create)
    monkeypatch.setattr(replication, "open_admin", lambda settings: None)
    monkeypatch.setattr(replication, "broker_count", lambda client, timeout: brokers)
    assert create_kept(KAFKA, "t", {"a": "b"}, wanted)
    assert created == [("t", 1, *asked)]


@pytest.mark.parametrize(
    ("brokers", "copies", "said"),
    [
        (1, Copies(replicas=1, in_sync=1), None),
        (2, Copies(replicas=2, in_sync=2), None),
        (3, Copies(replicas=3, in_sync=2), None),
        (3, Copies(replicas=3, in_sync=None), None),
        (
            2,
            Copies(replicas=1, in_sync=1),
            "topic 't' has one replica on 2 brokers: should its broker be lost, rows are lost",
        ),
        (
            3,
            Copies(replicas=1, in_sync=None),
            "topic 't' has one replica on 3 brokers: should its broker be lost, rows are lost",
        ),
        (
            3,
            Copies(replicas=3, in_sync=1),
            "topic 't' has min.insync.replicas 1: should a broker be lost while it alone is in "
            "sync, rows are lost; set it to 2",
        ),
    ],
)
def test_what_is_said_of_a_topic(brokers: int, copies: Copies, said: str | None) -> None:
    assert warning(brokers, "t", copies, "rows are lost") == said


def test_topics_that_may_lose_records_are_named_at_a_start(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    facts = {"out": TopicFacts("a", 3), "own": TopicFacts("b", 1), "dead": TopicFacts("c", 2)}
    config = {"out": {"min.insync.replicas": "2"}, "own": {}, "dead": {"min.insync.replicas": "1"}}
    monkeypatch.setattr(replication, "open_admin", lambda settings: SimpleNamespace())
    monkeypatch.setattr(replication, "broker_count", lambda client, timeout: 3)
    monkeypatch.setattr(replication, "topic_facts", lambda client, topics, timeout: facts)
    monkeypatch.setattr(replication, "topic_settings", lambda kafka, topic, timeout: config[topic])
    warn_of_single_copies(KAFKA, {"out": "x", "own": "rows are repeated", "dead": "letters go"})
    assert [record.getMessage() for record in caplog.records] == [
        "topic 'own' has one replica on 3 brokers: should its broker be lost, rows are repeated",
        "topic 'dead' has min.insync.replicas 1: should a broker be lost while it alone is in "
        "sync, letters go; set it to 2",
    ]
