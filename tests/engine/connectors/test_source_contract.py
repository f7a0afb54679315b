"""The laws of sources: rows are implementations, ours and a made-up one."""

from typing import Any

import pyarrow as pa
import pytest

from kaflow_engine.connectors.contract import TaskPart
from kaflow_engine.connectors.kafka.admin import create_topic
from kaflow_engine.connectors.kafka.delivery.deliver import SinkSettings
from kaflow_engine.connectors.kafka.delivery.topic_sink import TopicSink
from kaflow_engine.connectors.kafka.run_log.control import ControlTopic
from kaflow_engine.connectors.kafka.source import TopicSource
from kaflow_engine.connectors.source_contract import Source, StartPolicy
from kaflow_engine.flow.records import OUTPUT
from tests.engine.connectors.made_up_here import (
    ListSource,
)

NOW = 1_795_296_000_000
VALUES = [[b"a", b"b", b"c"], [b"d"], []]


@pytest.fixture(params=[pytest.param("kafka", marks=pytest.mark.kafka), "a list"])
def source(request: pytest.FixtureRequest) -> Source:
    if request.param == "a list":
        return ListSource(VALUES)
    kafka, topic = request.getfixturevalue("kafka"), request.getfixturevalue("unique")
    create_topic(kafka, topic, len(VALUES))
    empty = {"topic": topic, "slot": 0, "key": None, "timestamp": NOW, "kind": 0}
    rows = [
        {**empty, "value": value, "partition": p}
        for p, values in enumerate(VALUES)
        for value in values
    ]
    settings = SinkSettings(
        kafka=kafka,
        pipeline_id=topic,
        state_id="s",
        generation=1,
        sink="out",
        epoch=ControlTopic(kafka, topic).start_run("s", 1).epoch,
        exactly_once=False,
    )
    table = pa.Table.from_pylist(rows, schema=OUTPUT)
    TopicSink(settings).write(TaskPart(rows=table, batch=1, epoch=1))
    return TopicSource(kafka, topic)


def test_a_source_is_read_between_its_start_and_its_end(source: Source) -> None:
    assert list(source.partitions()) == [0, 1, 2]
    assert source.latest() == {0: 3, 1: 1, 2: 0}
    assert source.start("earliest") == {0: 0, 1: 0, 2: 0}
    assert source.start("latest") == source.latest()
    found = source.read(source.start("earliest"), source.latest())
    by_partition = [
        [row["value"] for row in found.to_pylist() if row["partition"] == p] for p in range(3)
    ]
    assert by_partition == VALUES


@pytest.mark.parametrize("policy", ["earliest", "latest", 0, NOW + 1])
def test_a_start_never_lies_behind_the_end(source: Source, policy: StartPolicy) -> None:
    end = source.latest()
    assert all(0 <= at <= end[p] for p, at in source.start(policy).items())


def in_order(records: pa.Table) -> list[dict[str, Any]]:
    rows: list[dict[str, Any]] = records.to_pylist()
    return sorted(rows, key=lambda row: (row["partition"], row["offset"]))


def test_a_range_gives_the_same_records_each_time(source: Source) -> None:
    start, end = {0: 1, 1: 0, 2: 0}, {0: 3, 1: 1, 2: 0}
    first, again = source.read(start, end), source.read(start, end)
    assert in_order(first) == in_order(again)
    found = [(row["partition"], row["offset"], row["value"]) for row in in_order(first)]
    assert found == [(0, 1, b"b"), (0, 2, b"c"), (1, 0, b"d")]


def test_an_empty_range_has_no_records(source: Source) -> None:
    assert source.read(source.latest(), source.latest()).num_rows == 0
