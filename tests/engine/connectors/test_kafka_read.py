"""Bounded reads of committed records."""

import pyarrow as pa
import pytest

from kaflow_engine.connectors.kafka.admin import create_topic
from kaflow_engine.connectors.kafka.client import KafkaSettings, open_producer
from kaflow_engine.connectors.kafka.read import read_all, read_first, read_ranges, tail
from kaflow_engine.connectors.kafka.run_log.transactions import open_transactional
from kaflow_engine.errors import SourceError
from kaflow_engine.flow.records import RECORDS

NOW = 1_795_296_000_000


def column(table: pa.Table, name: str) -> list[object]:
    return table.column(name).to_pylist()


@pytest.fixture
def topic(kafka: KafkaSettings, unique: str) -> str:
    """Partition 0: offsets 0-9 plain, 10-12 aborted, 14 committed; partition 1: one record."""
    create_topic(kafka, unique, 2)
    plain = open_producer(kafka).api
    for i in range(10):
        plain.produce(unique, b"v%d" % i, b"k", 0, timestamp=NOW + i)
    plain.produce(unique, None, None, 1, timestamp=NOW + 5, headers=[("h", b"x"), ("h", None)])
    plain.flush(10)
    writer = open_transactional(kafka, unique, 60_000, 10_000).api
    writer.begin_transaction()
    for i in range(3):
        writer.produce(unique, b"aborted", b"k", 0, timestamp=NOW + 10 + i)
    writer.flush(10)
    writer.abort_transaction(10)
    writer.begin_transaction()
    writer.produce(unique, b"last", b"k", 0, timestamp=NOW + 20)
    writer.commit_transaction(10)
    return unique


@pytest.mark.kafka
def test_reads(kafka: KafkaSettings, topic: str) -> None:
    everything = read_all(kafka, topic)
    assert everything.schema.equals(RECORDS)
    assert column(everything, "offset") == [*range(10), 14, 0]
    assert everything.to_pylist()[-1] == {
        "topic": topic,
        "partition": 1,
        "offset": 0,
        "timestamp": NOW + 5,
        "key": None,
        "value": None,
        "headers": [{"key": "h", "value": b"x"}, {"key": "h", "value": None}],
    }
    newest = tail(kafka, topic, 3)
    assert column(newest.records, "value") == [b"v8", b"v9", b"last"]
    assert newest.ends == {0: 16, 1: 1}
    assert column(tail(kafka, topic, 7).records, "value")[:3] == [b"v5", None, b"v6"]
    assert tail(kafka, topic, 100).records.num_rows == 12
    assert tail(kafka, topic, 0).records.num_rows == 0
    assert tail(kafka, topic, 100, most_bytes=1).records.num_rows < 12
    assert read_first(kafka, topic, 4).num_rows == 4
    assert column(read_ranges(kafka, topic, {0: 8}, {0: 14}), "offset") == [8, 9]
    assert column(read_ranges(kafka, topic, {0: 8}, {0: 99}), "offset") == [8, 9, 14]


@pytest.mark.kafka
def test_an_empty_topic(kafka: KafkaSettings, unique: str) -> None:
    create_topic(kafka, unique, 2)
    assert read_first(kafka, unique).num_rows == 0
    assert tail(kafka, unique, 5).records.num_rows == 0


@pytest.mark.kafka
def test_a_missing_topic(kafka: KafkaSettings, unique: str) -> None:
    with pytest.raises(SourceError, match=f"no topic '{unique}' at"):
        read_first(kafka, unique)
