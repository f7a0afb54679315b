"""Waiting for topics that do not exist yet, also while brokers are restarted."""
# pyright: basic

from kaflow_engine.connectors.kafka import wait as module
from kaflow_engine.connectors.kafka.admin import TopicInfo
from kaflow_engine.connectors.kafka.client import KafkaSettings
from kaflow_engine.connectors.kafka.errors import BrokerAway

HERE = KafkaSettings.of(["h:1"])


def there(**topics):
    return {name: TopicInfo(1, exists) for name, exists in topics.items()}


def test_topics_are_waited_for_and_brokers_meanwhile(monkeypatch):
    away = BrokerAway("no broker answers")
    answers = [
        there(a=False, b=False),
        away,
        away,
        {},
        there(a=True, b=False),
        there(a=True, b=True),
    ]
    said, pauses = [], []

    def describe(*_):
        answer = answers.pop(0)
        if isinstance(answer, BrokerAway):
            raise answer
        return answer

    monkeypatch.setattr(module, "describe", describe)
    monkeypatch.setattr("time.sleep", pauses.append)
    module.await_topics(HERE, ["a", "b"], 60_000, said.append)
    assert answers == []
    assert said == [
        "waiting for topics 'a', 'b', which do not exist yet",
        "waiting for a broker at h:1, at most 60 s",
    ]
    assert pauses == [0.25, 0.25, 0.5]


def test_whoever_stops_waits_no_more(monkeypatch):
    monkeypatch.setattr(module, "describe", lambda *_: there(a=False))
    monkeypatch.setattr("time.sleep", lambda _: asked.append(1))
    said, asked = [], []
    module.await_topics(HERE, ["a"], 1_000, said.append, lambda: bool(asked))
    assert said == ["waiting for topic 'a', which does not exist yet"]
