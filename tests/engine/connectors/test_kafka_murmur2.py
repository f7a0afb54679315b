"""Keys land on the partitions that Java's default partitioner would choose."""

import pytest

from kaflow_engine.connectors.kafka.admin import create_topic
from kaflow_engine.connectors.kafka.client import KafkaSettings
from kaflow_engine.connectors.kafka.delivery.deliver import (
    SinkSettings,
    close_producers,
    dead_letter_partition,
    deliver,
)
from kaflow_engine.connectors.kafka.run_log.control import ControlTopic
from tests.committed import read_committed

MASK = 0xFFFFFFFF


def murmur2(data: bytes) -> int:
    """Return the hash of org.apache.kafka.common.utils.Utils.murmur2, as a signed int."""
    m = 0x5BD1E995
    h = (0x9747B28C ^ len(data)) & MASK
    whole = len(data) & ~3
    for i in range(0, whole, 4):
        k = int.from_bytes(data[i : i + 4], "little") * m & MASK
        k = (k ^ k >> 24) * m & MASK
        h = (h * m & MASK) ^ k
    if len(data) > whole:
        h = (h ^ int.from_bytes(data[whole:], "little")) * m & MASK
    h = (h ^ h >> 13) * m & MASK
    h ^= h >> 15
    return h - (1 << 32) if h >> 31 else h


def java_partition(key: bytes, partitions: int) -> int:
    return (murmur2(key) & 0x7FFFFFFF) % partitions


@pytest.mark.parametrize(
    ("key", "expected"),
    [
        (b"21", -973932308),
        (b"foobar", -790332482),
        (b"a-little-bit-long-string", -985981536),
        (b"a-little-bit-longer-string", -1486304829),
        (b"lkjh234lh9fiuh90y23oiuhsafujhadof229phr9h19h89h8", -58897971),
        (b"abc", 479470107),
    ],
)
def test_the_oracle_is_java(key: bytes, expected: int) -> None:
    assert murmur2(key) == expected


@pytest.mark.parametrize("count", [1, 2, 7])
def test_dead_letters_of_a_partition_stay_together(count: int) -> None:
    places = [dead_letter_partition("orders", p, count) for p in range(count)]
    assert sorted(places) == list(range(count))
    assert places == [dead_letter_partition("orders", p, count) for p in range(count)]


@pytest.mark.kafka
def test_placement(kafka: KafkaSettings, unique: str, output) -> None:
    keys = [b"", b"21", b"foobar", b"abc", "schlüssel".encode(), *(b"%d" % i for i in range(300))]
    create_topic(kafka, unique, 6)
    sink = SinkSettings(
        kafka=kafka,
        pipeline_id=unique,
        state_id="s",
        generation=1,
        sink="out",
        epoch=ControlTopic(kafka, unique).start_run("s", 1).epoch,
        exactly_once=False,
    )
    deliver(sink, 1, output([(unique, key, b"v") for key in keys]))
    close_producers()
    rows = read_committed(kafka, unique).to_pylist()
    assert {row["key"]: row["partition"] for row in rows} == {
        key: java_partition(key, 6) for key in keys
    }
