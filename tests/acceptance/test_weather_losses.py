"""Topics that are missing, deleted, recreated, or cut short by retention."""
# pyright: basic

import json
import threading

import pytest
from confluent_kafka import TopicPartition
from confluent_kafka.admin import NewPartitions

from kaflow_engine.connectors.kafka.admin import MissingTopic, create_topic, delete_topics, offsets
from kaflow_engine.connectors.kafka.client import KafkaSettings, open_admin, open_producer
from kaflow_engine.connectors.kafka.read import read_all
from kaflow_engine.model.specs import PipelineSpec
from kaflow_engine.runtime.failures.failures import DataLost
from kaflow_engine.runtime.planning.prepare import prepare
from tests.acceptance.kafka_cases import config_for

pytestmark = [pytest.mark.spark, pytest.mark.kafka]


@pytest.fixture
def kafka(broker):
    return KafkaSettings.of([broker.bootstrap])


class Pipeline:
    """One pipeline that copies `<name>.in`, run by the shared session."""

    def __init__(self, spark, broker, kafka, name, path, on_data_loss):
        self.spark, self.kafka, self.name = spark, kafka, name
        self.config = config_for(broker, path)
        self.spec = PipelineSpec.model_validate(
            {
                "name": name,
                "query": f'SELECT e.n FROM "{name}.in" e',
                "output": {"topic": f"{name}.out"},
                "topics": {
                    f"{name}.in": {"columns": {"n": "BIGINT"}, "on_data_loss": on_data_loss}
                },
            }
        )

    @property
    def topic(self):
        return f"{self.name}.in"

    def send(self, numbers, partition=0):
        producer = open_producer(self.kafka).api
        for n in numbers:
            producer.produce(self.topic, json.dumps({"n": n}).encode(), partition=partition)
        assert producer.flush(30) == 0

    def run(self, **more):
        from kaflow_engine.runtime.application import run_pipelines  # it imports Spark

        (planned,) = prepare([self.spec], self.config)
        more = more or {"until_caught_up": True}
        summary = run_pipelines([planned.plan], self.config, spark=self.spark, **more)
        return summary.pipelines[self.name].counters

    def rows(self):
        found = read_all(self.kafka, f"{self.name}.out")["value"].to_pylist()
        return sorted(json.loads(value)["n"] for value in found)

    def remove_before(self, offset, partition=0):
        """Do what retention does."""
        admin = open_admin(self.kafka).api
        place = TopicPartition(self.topic, partition, offset)
        for answer in admin.delete_records([place]).values():
            answer.result(timeout=30)

    def recreate(self, partitions):
        delete_topics(self.kafka, [self.topic])
        wait_until_gone(self.kafka, self.topic)
        assert create_topic(self.kafka, self.topic, partitions)


def wait_until_gone(kafka, topic):
    """The broker forgets a topic some time after it said so; asking again is all there is."""
    for _ in range(200):
        try:
            offsets(kafka, {topic: 1}, "earliest")
        except MissingTopic:
            return
    raise AssertionError(f"{topic} is still there")


@pytest.fixture
def pipeline(spark, broker, kafka, unique, tmp_path):
    def build(on_data_loss, partitions=1):
        made = Pipeline(spark, broker, kafka, unique, tmp_path, on_data_loss)
        create_topic(kafka, made.topic, partitions)
        return made

    return build


def test_retention_that_passed_the_pipeline_stops_it(pipeline):
    copy = pipeline("fail", 2)
    copy.send(range(10), 1)
    copy.run()
    copy.send(range(10, 30), 1)
    copy.remove_before(25, 1)
    with pytest.raises(DataLost) as caught:
        copy.run()
    assert str(caught.value) == (
        f"topic '{copy.topic}', partition 1: offset 10 comes next, but the first that is left is "
        "25: 15 offsets are lost\n"
        "  hint: the topic's retention passed the pipeline; keep records longer (retention.ms), "
        f"and to go on without them set topics.{copy.topic}.on_data_loss: continue"
    )
    assert caught.value.exit_code == 11
    assert copy.rows() == list(range(10))


def test_retention_that_passed_the_pipeline_is_counted(pipeline):
    copy = pipeline("continue")
    copy.send(range(10))
    copy.run()
    copy.send(range(10, 30))
    copy.remove_before(25)
    counters = copy.run()
    assert copy.rows() == [*range(10), *range(25, 30)]
    assert (counters["lost"], counters["read"], counters["emitted"]) == (15, 15, 15)
    copy.send([30])
    assert copy.run()["lost"] == 15


@pytest.mark.parametrize(("on_data_loss", "partitions"), [("fail", 1), ("continue", 1)])
def test_a_topic_recreated_with_fewer_records(pipeline, on_data_loss, partitions):
    copy = pipeline(on_data_loss, 1)
    copy.send(range(10))
    copy.run()
    copy.recreate(partitions)
    copy.send(range(100, 103))
    if on_data_loss == "fail":
        with pytest.raises(DataLost, match="offset 10 comes next, but the topic was recreated"):
            copy.run()
        assert copy.rows() == list(range(10))
        return
    counters = copy.run()
    assert copy.rows() == [*range(10), 100, 101, 102]
    assert counters["restarted_partitions"] == 1
    copy.send([103])
    assert copy.run()["restarted_partitions"] == 1
    assert copy.rows()[-1] == 103


def test_a_partition_that_retention_has_cut_before_it_was_ever_read(pipeline):
    copy, told = pipeline("continue"), []
    copy.send(range(5))
    copy.run()
    admin = open_admin(copy.kafka).api
    admin.create_partitions([NewPartitions(copy.topic, 2)])[copy.topic].result(30)
    copy.send(range(10, 20), 1)
    copy.remove_before(7, 1)
    assert copy.run(until_caught_up=True, on_progress=told.append)["lost"] == 7
    assert copy.rows() == [*range(5), 17, 18, 19]
    assert "degraded" not in {progress.state for progress in told}


def run_until(copy, does, done):
    """Run without an end; when the first records are through, change the world; wait."""
    stop, changed = threading.Event(), threading.Event()

    def progressed(progress):
        if progress.batch_records and not changed.is_set():
            changed.set()
            does()
        elif changed.is_set() and done(progress):
            stop.set()

    return copy.run(on_progress=progressed, stop=stop)


def test_a_topic_that_is_deleted_while_it_is_read(pipeline):
    copy = pipeline("fail")
    copy.send(range(5))
    with pytest.raises((MissingTopic, DataLost), match=copy.topic):
        run_until(copy, lambda: delete_topics(copy.kafka, [copy.topic]), lambda progress: False)
    assert copy.rows() == list(range(5))


def test_a_topic_that_is_recreated_while_it_is_read(pipeline):
    copy = pipeline("continue")
    copy.send(range(5))

    def refill():
        copy.recreate(1)
        copy.send(range(100, 120))

    counters = run_until(copy, refill, lambda progress: copy.rows()[-1:] == [119])
    assert copy.rows() == [*range(5), *range(100, 120)]
    assert counters["restarted_partitions"] == 1


def test_a_missing_topic_is_told_with_the_nearest(pipeline, kafka):
    copy = pipeline("fail")
    create_topic(kafka, f"{copy.name}.inn", 1)
    delete_topics(kafka, [copy.topic])
    wait_until_gone(kafka, copy.topic)
    with pytest.raises(MissingTopic) as caught:
        copy.run()
    assert f"no topic '{copy.topic}' at" in str(caught.value)
    assert f"did you mean '{copy.name}.inn'?" in str(caught.value)
