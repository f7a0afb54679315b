"""Topics that became others, or more, while a pipeline was away: without Spark, by real runs."""

import re
from dataclasses import replace
from pathlib import Path

import pytest
from confluent_kafka import TopicPartition
from confluent_kafka.admin import NewPartitions

from kaflow_engine.connectors.kafka.admin import create_topic, delete_topics
from kaflow_engine.connectors.kafka.client import open_admin, open_producer
from kaflow_engine.connectors.kafka.topics import topic_ids
from kaflow_engine.state.log.batch_log import BatchLog
from tests.acceptance.crash_here import Order
from tests.acceptance.crash_pipeline import PARTITIONS, _records, create_outputs, log_of

pytestmark = pytest.mark.kafka

EVENTS = 60


class World:
    """One pipeline over topics of its own."""

    def __init__(self, broker, forks, order):
        self.kafka, self._forks, self.order = broker.settings, forks, order

    def topic(self, side):
        return f"{self.order.inputs}.{side}"

    def send(self, *sides, count=EVENTS):
        producer = open_producer(self.kafka, **{"enable.idempotence": True}).api
        for side, key, value, at in _records(count):
            if side in sides:
                producer.produce(self.topic(side), value, key, timestamp=at)
        assert producer.flush(30) == 0

    def run(self, **changes):
        (end,) = self._forks.run([replace(self.order, **changes)])
        return end

    def recreate(self, side, count):
        """Delete a topic, and fill the next one of its name beyond what the first one held."""
        topic = self.topic(side)
        before = topic_ids(self.kafka, [topic])
        delete_topics(self.kafka, [topic])
        while not create_topic(self.kafka, topic, PARTITIONS[side]):
            pass  # the broker still forgets the first one
        assert topic_ids(self.kafka, [topic]) != before
        self.send(side, count=count)

    @property
    def log(self) -> BatchLog:
        return log_of(Path(self.order.path), self.order.name)

    @property
    def counters(self):
        return dict(self.log.last_commit().counters)


@pytest.fixture(scope="module")
def worlds(broker, forks, tmp_path_factory):
    """Pipelines that have read all there was, begun at once."""
    path = str(tmp_path_factory.mktemp("recreated"))
    found = []
    for number in range(8):
        name = f"recreated{number}"
        order = Order(name=name, inputs=f"{name}.in", broker=broker.bootstrap, path=path)
        made = World(broker, forks, order)
        for side, count in PARTITIONS.items():
            create_topic(made.kafka, made.topic(side), count)
        made.send(*PARTITIONS)
        create_outputs(made.kafka, name)
        found.append(made)
    assert {end.said for end in forks.run([each.order for each in found])} == {""}
    return found


@pytest.fixture
def world(worlds):
    """One that no other test has."""
    return worlds.pop()


def test_a_topic_that_was_recreated_and_refilled_stops_the_pipeline(world):
    before = world.counters
    old = topic_ids(world.kafka, [world.topic("events")])
    world.recreate("events", 3 * EVENTS)
    new = topic_ids(world.kafka, [world.topic("events")])
    end = world.run()
    (old_id,), (new_id,) = old.values(), new.values()
    assert re.fullmatch(
        rf"DataLost: topic '{world.topic('events')}', partition 0: offset \d+ comes next, but the "
        rf"topic was recreated: it had the id {old_id}, and the one with the id {new_id} begins at "
        r"0 and ends at \d+\n  hint: start a new state to read it; to go on without them set "
        rf"topics\.{world.topic('events')}\.on_data_loss: continue, from offset 0",
        end.said,
    )
    assert end.exit_code == 11
    assert world.counters == before


@pytest.mark.parametrize("side", ["events", "profiles"])
def test_a_topic_that_was_recreated_is_read_from_its_first_record(world, side):
    read = world.counters["read"]
    first = world.counters
    world.recreate(side, 3 * EVENTS)
    assert world.run(on_data_loss="continue").said == ""
    sent = sum(each[0] == side for each in _records(3 * EVENTS))
    assert world.counters["restarted_partitions"] == PARTITIONS[side]
    assert "lost" not in world.counters
    if side == "events":
        assert world.counters["read"] == read + sent
    assert world.counters != first
    after = world.counters
    assert world.run(on_data_loss="continue").said == ""  # and only once
    assert world.counters == after


def test_a_batch_of_a_topic_that_was_recreated_is_lost(world):
    before = world.counters["read"]
    world.send("events")
    assert world.run(crash_at="batch_logged:*").how == "killed"
    lost = world.log.open_batch()
    world.recreate("events", 3 * EVENTS)
    assert world.run().said.startswith("DataLost: ")
    assert world.run(on_data_loss="continue").said == ""
    gone = sum(end - start for start, end in lost.ranges[world.topic("events")].values())
    sent = sum(each[0] == "events" for each in _records(3 * EVENTS))
    assert world.counters["lost"] == gone > 0
    assert world.counters["restarted_partitions"] == PARTITIONS["events"]
    assert world.counters["read"] == before + sent


def test_a_run_that_was_killed_behind_the_loss_counts_it(world):
    before = world.counters["read"]
    world.recreate("events", 3 * EVENTS)
    assert world.run(on_data_loss="continue", crash_at="batch_logged:*").how == "killed"
    assert world.run(on_data_loss="continue").said == ""
    sent = sum(each[0] == "events" for each in _records(3 * EVENTS))
    assert world.counters["restarted_partitions"] == PARTITIONS["events"]
    assert world.counters["read"] == before + sent


@pytest.mark.parametrize("on_data_loss", ["fail", "continue"])
def test_a_partition_that_was_added_begins_where_it_begins(world, on_data_loss):
    topic, before = world.topic("events"), world.counters["read"]
    admin = open_admin(world.kafka).api
    admin.create_partitions([NewPartitions(topic, 4)])[topic].result(30)
    producer = open_producer(world.kafka).api
    for n in range(10):
        value = b'{"id": "u1", "n": "%d"}' % (1000 + n)
        producer.produce(topic, value, b"u1", 3, timestamp=1_700_000_000_000)
    assert producer.flush(30) == 0
    place = TopicPartition(topic, 3, 7)
    admin.delete_records([place])[place].result(30)  # what retention does
    end = world.run(on_data_loss=on_data_loss)
    if on_data_loss == "fail":
        assert end.said.startswith(
            f"DataLost: topic '{topic}', partition 3: offset 0 comes next, but the first that is "
            "left is 7: 7 offsets are lost\n"
        )
        return
    assert end.said == ""
    assert world.counters["lost"] == 7
    assert world.counters["read"] == before + 3


def test_a_state_without_ids_takes_those_of_now(world):
    record = world.log.load_state()
    log = world.log
    log.replace_state(replace(record, topic_ids={}))
    last = log.load_batch(log.last_commit().number)
    log.store.delete(f"batches/{last.number}.json")
    log.begin(replace(last, topic_ids={}))
    world.send("events")
    assert world.run().said == ""
    ids = topic_ids(world.kafka, [world.topic(side) for side in PARTITIONS])
    assert world.log.load_batch(world.log.last_commit().number).topic_ids == ids
