"""Ranges as tasks read them: by the library of `engine/native`, and by Python's own consumer."""
# pyright: basic

import threading
from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pytest
from confluent_kafka import TopicPartition

from kaflow_engine.connectors.kafka.admin import create_topic, open_admin
from kaflow_engine.connectors.kafka.client import KafkaSettings, open_producer
from kaflow_engine.connectors.kafka.errors import BrokerAway
from kaflow_engine.connectors.kafka.native import reads
from kaflow_engine.connectors.kafka.native.library import library, library_path
from kaflow_engine.connectors.kafka.native.reader import TopicRange
from kaflow_engine.connectors.kafka.native.reads import TopicRead, together
from kaflow_engine.connectors.kafka.run_log.transactions import open_transactional
from kaflow_engine.errors import LossSuspected, ModelError
from kaflow_engine.flow.records import RECORDS

NOW = 1_795_296_000_000
WAYS = ["python", *(["library"] if library() else [])]
"""The library is built where cargo is there."""


@pytest.fixture(params=WAYS)
def way(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    if request.param == "python":
        monkeypatch.setattr(reads, "library", lambda: None)
    return request.param


def read(kafka: KafkaSettings, *ranges: TopicRange, called: str | None = None) -> pa.Table:
    names = {each.topic: called or each.topic for each in ranges}
    return pa.Table.from_batches(TopicRead(kafka, ranges, names)(), RECORDS)


def offsets(table: pa.Table) -> list[object]:
    return table["offset"].to_pylist()


@pytest.fixture
def topic(kafka: KafkaSettings, unique: str) -> str:
    """Partition 0: 0 to 9, three that were aborted, their end, and 14; 1: of all kinds."""
    create_topic(kafka, unique, 2)
    plain = open_producer(kafka).api
    for n in range(10):
        plain.produce(unique, b"v%d" % n, b"k", 0, timestamp=NOW + n)
    kinds = [
        (None, None, []),
        (b"", b"", []),
        (b"v", None, [("h", b"x"), ("h", None), ("", b"")]),
        (b"\x00\xff" * 9, b"\x00", [("schlüssel", "wert ✓".encode())]),
        (b"w" * 300_000, b"k" * 999, []),
    ]
    for value, key, headers in kinds:
        plain.produce(unique, value, key, 1, timestamp=NOW, headers=headers)
    plain.flush(10)
    writer = open_transactional(kafka, unique, 60_000, 10_000).api
    writer.begin_transaction()
    for n in range(3):
        writer.produce(unique, b"aborted", b"k", 0, timestamp=NOW + 10 + n)
    writer.flush(10)
    writer.abort_transaction(10)
    writer.begin_transaction()
    writer.produce(unique, b"last", b"k", 0, timestamp=NOW + 20)
    writer.commit_transaction(10)
    return unique


RANGES: list[tuple[tuple[int, int, int], list[int]]] = [
    ((0, 0, 15), [*range(10), 14]),
    ((0, 3, 5), [3, 4]),
    ((0, 9, 14), [9]),
    ((0, 10, 14), []),
    ((0, 10, 15), [14]),
    ((0, 14, 16), [14]),
    ((0, 16, 16), []),
    ((1, 0, 5), [0, 1, 2, 3, 4]),
    ((1, 4, 5), [4]),
]


@pytest.mark.kafka
def test_exact_ranges_of_committed_records(kafka: KafkaSettings, topic: str, way: str) -> None:
    for (partition, start, end), expected in RANGES:
        found = read(kafka, TopicRange(topic, partition, start, end))
        assert found.schema.equals(RECORDS)
        assert offsets(found) == expected, (partition, start, end)
        found.validate(full=True)
    both = read(kafka, TopicRange(topic, 1, 0, 5), TopicRange(topic, 0, 2, 15), called="t")
    assert offsets(both) == [0, 1, 2, 3, 4, 2, 3, 4, 5, 6, 7, 8, 9, 14]
    assert both["partition"].to_pylist() == [1] * 5 + [0] * 9
    assert set(both["topic"].to_pylist()) == {"t"}
    assert both["timestamp"].to_pylist()[5:] == [NOW + n for n in (2, 3, 4, 5, 6, 7, 8, 9, 20)]
    assert both["value"].to_pylist()[:3] == [None, b"", b"v"]
    assert both["key"].to_pylist()[:4] == [None, b"", None, b"\x00"]
    assert [len(text) for text in both["value"].to_pylist()[3:5]] == [18, 300_000]
    assert both["headers"].to_pylist()[:5] == [
        [],
        [],
        [{"key": "h", "value": b"x"}, {"key": "h", "value": None}, {"key": "", "value": b""}],
        [{"key": "schlüssel", "value": "wert ✓".encode()}],
        [],
    ]


@pytest.mark.kafka
def test_several_batches_and_what_is_read_again(
    kafka: KafkaSettings, topic: str, way: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("kaflow_engine.connectors.kafka.native.reader._ROWS", 4)
    wanted = TopicRange(topic, 0, 0, 15), TopicRange(topic, 1, 0, 5)
    first, again = read(kafka, *wanted), read(kafka, *wanted)
    assert first.equals(again)
    assert offsets(first) == [*range(10), 14, *range(5)]
    unfinished = TopicRead(kafka, wanted, {})()
    next(unfinished)
    del unfinished
    monkeypatch.setattr("kaflow_engine.connectors.kafka.native.reader._BYTES", 10)
    assert read(kafka, *wanted).equals(first)


@pytest.mark.kafka
def test_a_transaction_that_is_open_is_waited_for(
    kafka: KafkaSettings, topic: str, way: str
) -> None:
    writer = open_transactional(kafka, topic, 60_000, 10_000).api
    writer.begin_transaction()
    writer.produce(topic, b"open", b"k", 0)
    writer.flush(10)
    found: list[pa.Table] = []
    wanted = TopicRange(topic, 0, 14, 17)
    reading = threading.Thread(target=lambda: found.append(read(kafka, wanted)))
    reading.start()
    writer.commit_transaction(10)
    reading.join(30)
    assert [offsets(each) for each in found] == [[14, 16]]


def gone(kafka: KafkaSettings, topic: str) -> None:
    admin = open_admin(kafka).api
    for future in admin.delete_records([TopicPartition(topic, 0, 6)]).values():
        future.result(10)


@pytest.mark.kafka
def test_records_that_are_gone_are_missed(kafka: KafkaSettings, topic: str, way: str) -> None:
    gone(kafka, topic)
    with pytest.raises(LossSuspected, match=rf"lost in Kafka \(reading topic '{topic}'"):
        read(kafka, TopicRange(topic, 0, 3, 15))
    assert offsets(read(kafka, TopicRange(topic, 0, 6, 15))) == [6, 7, 8, 9, 14]


@pytest.mark.kafka
def test_a_topic_that_gives_no_records(
    kafka: KafkaSettings, unique: str, way: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(reads, "_TIMEOUT", 500)
    with pytest.raises(BrokerAway, match=f"topic '{unique}' gave no more records within 0[.]5 s"):
        read(kafka, TopicRange(unique, 0, 0, 5))


@pytest.mark.parametrize("way", WAYS, indirect=True)
def test_settings_that_the_client_refuses(way: str) -> None:
    wrong = KafkaSettings.of(["127.0.0.1:9"], {"linger.mss": "5"})
    with pytest.raises(ModelError, match=r"unknown Kafka property 'linger\.mss'"):
        read(wrong, TopicRange("t", 0, 0, 5))


def test_ranges_of_one_cluster_are_read_at_once() -> None:
    here, there = KafkaSettings.of(["here:1"]), KafkaSettings.of(["there:1"])
    one, two, three = (TopicRange("t", number, 0, 5) for number in range(3))

    def other() -> Iterator[pa.RecordBatch]:
        yield from ()

    found = together(
        [
            TopicRead(here, (one,), {"t": "a"}),
            other,
            TopicRead(there, (two,), {"t": "b"}),
            TopicRead(here, (three,), {"t": "a"}),
        ]
    )
    assert found == [
        TopicRead(here, (one, three), {"t": "a"}),
        TopicRead(there, (two,), {"t": "b"}),
        other,
    ]


def test_where_the_library_is(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("KAFLOW_NATIVE", "off")
    assert library_path() is None
    monkeypatch.setenv("KAFLOW_NATIVE", str(tmp_path / "none.so"))
    assert library_path() is None
    (tmp_path / "none.so").write_bytes(b"no library")
    assert library_path() == tmp_path / "none.so"
    assert library.__wrapped__() is None
