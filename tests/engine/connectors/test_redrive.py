"""A dead letter is redriven once, whatever others hold open and whatever was recreated."""
# pyright: basic

import pytest

from kaflow_engine.connectors.kafka.admin import create_topic, delete_topics, describe
from kaflow_engine.connectors.kafka.client import KafkaSettings, open_producer
from kaflow_engine.connectors.kafka.dead_letters import redrive as module
from kaflow_engine.connectors.kafka.dead_letters.redrive import (
    find_letters,
    redrive,
    redriven_topic,
)
from kaflow_engine.connectors.kafka.read import read_all
from kaflow_engine.connectors.kafka.run_log.transactions import open_transactional
from kaflow_engine.errors import StateError
from kaflow_engine.model.letters import ABOUT, PREFIX

pytestmark = pytest.mark.kafka


class World:
    """Dead letters of two pipelines that share a topic of them."""

    def __init__(self, broker, topic):
        self.kafka, self.topic = KafkaSettings.of([broker.bootstrap]), topic
        self.letters = f"{topic}_dead"
        create_topic(self.kafka, topic, 1)

    def fail(self, *pipelines):
        """Let a record of each pipeline fail."""
        create_topic(self.kafka, self.letters, 1)
        producer = open_producer(self.kafka).api
        for offset, name in enumerate(pipelines):
            about = (name, self.topic, "0", str(offset), "1767225600000", "sql", "Error", "no", "1")
            headers = [(f"{PREFIX}{n}", v.encode()) for n, v in zip(ABOUT, about, strict=True)]
            producer.produce(self.letters, name.encode(), b"k", 0, headers=headers)
        assert producer.flush(30) == 0
        return self

    def redrive(self, pipeline, **more):
        """Redrive the letters of a pipeline; return how many were sent."""
        return len(redrive(self.kafka, self.letters, pipeline, pipeline, None, **more))

    def sent(self):
        return read_all(self.kafka, self.topic)["value"].to_pylist()


@pytest.fixture
def world(broker, unique):
    return World(broker, unique)


def test_notes_behind_an_open_transaction_of_another_pipeline(world, monkeypatch):
    world.fail("x", "y")
    other = open_transactional(world.kafka, f"{world.topic}.x", 60_000, 30_000).api
    send = module._send

    def send_behind(*about):
        other.begin_transaction()
        other.produce(redriven_topic(world.letters), b"{}", b"0:0", 0)
        assert other.flush(30) == 0
        send(*about)

    with monkeypatch.context() as patched:
        patched.setattr(module, "_send", send_behind)
        assert world.redrive("y") == 1
    with pytest.raises(StateError, match="cannot be read to its end: a transaction stays open"):
        world.redrive("y", patience=500)
    assert world.sent() == [b"y"]
    other.abort_transaction(30)
    assert world.redrive("y") == 0
    assert world.redrive("x") == 1
    assert world.sent() == [b"y", b"x"]


def test_letters_of_a_topic_that_was_recreated_are_others(world):
    world.fail("x")
    assert world.redrive("x") == 1
    assert world.redrive("x") == 0
    delete_topics(world.kafka, [world.letters])
    while describe(world.kafka, [world.letters])[world.letters].exists:
        pass
    world.fail("x")
    assert [letter.redriven for letter in find_letters(world.kafka, world.letters, "x")] == [False]
    assert world.redrive("x") == 1
    assert world.redrive("x") == 0


def test_notes_of_an_earlier_version_count(world):
    world.fail("x", "x")
    create_topic(world.kafka, redriven_topic(world.letters), 1, {"cleanup.policy": "compact"})
    producer = open_producer(world.kafka).api
    producer.produce(redriven_topic(world.letters), b"{}", b"0:1", 0)
    assert producer.flush(30) == 0
    assert world.redrive("x") == 1


@pytest.mark.parametrize("policy", ["delete", "compact,delete"])
def test_a_topic_of_notes_that_forgets_is_refused(world, policy):
    world.fail("x")
    create_topic(world.kafka, redriven_topic(world.letters), 1, {"cleanup.policy": policy})
    with pytest.raises(StateError, match=f"has cleanup.policy '{policy}' and would forget") as told:
        world.redrive("x")
    assert told.value.hint == "set its cleanup.policy to 'compact'"
    assert world.sent() == []
