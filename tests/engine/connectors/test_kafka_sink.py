"""Exactly once: whatever happens, readers of committed records see each row once."""

import os
import pickle
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from kaflow_engine.connectors.kafka.admin import create_topic
from kaflow_engine.connectors.kafka.client import KafkaSettings
from kaflow_engine.connectors.kafka.delivery import row_producer
from kaflow_engine.connectors.kafka.delivery.deliver import SinkSettings, close_producers, deliver
from kaflow_engine.connectors.kafka.native.library import VARIABLE, library
from kaflow_engine.connectors.kafka.run_log.control import ControlTopic
from kaflow_engine.connectors.run_log import Delivered
from kaflow_engine.errors import ModelError, SinkError
from kaflow_engine.flow.records import OUTPUT
from tests.committed import read_committed

pytestmark = pytest.mark.kafka

Rows = Callable[..., pa.Table]
ENGINE = Path(__file__).parents[3] / "engine"
NOW = 1_795_296_000_000
OPENING = ("before_slot", "slot_claimed")
CRASH_POINTS = (
    *OPENING,
    "before_transaction",
    "transaction_begun",
    "rows_produced",
    "marker_produced",
    "before_commit",
    "committed",
)


WAYS = ["python", *(["library"] if library() else [])]
"""The library is built where cargo is there; what no test names a way for is written by it then."""


@pytest.fixture
def way(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    if request.param == "python":
        monkeypatch.setenv(VARIABLE, "off")  # of processes that the test starts, too
        monkeypatch.setattr(row_producer, "library", lambda: None)
    return request.param


by_both = pytest.mark.parametrize("way", WAYS, indirect=True)


class Crash(BaseException):
    """Ends a task as a killed process would."""


def start(kafka: KafkaSettings, pipeline: str, exactly_once: bool = True) -> SinkSettings:
    run = ControlTopic(kafka, pipeline).start_run("s1", 1)
    return SinkSettings(
        kafka=kafka,
        pipeline_id=pipeline,
        state_id="s1",
        generation=1,
        sink="out",
        epoch=run.epoch,
        epoch_offset=run.epoch_offset,
        exactly_once=exactly_once,
        delivered=run.delivered_to("out"),
    )


def values(kafka: KafkaSettings, topic: str) -> list[bytes]:
    return sorted(read_committed(kafka, topic).column("value").to_pylist())


@by_both
def test_rows_arrive_as_they_were(kafka: KafkaSettings, unique: str, way: str) -> None:
    create_topic(kafka, unique, 3)
    create_topic(kafka, f"{unique}-dead", 2)
    header = [{"key": "h", "value": b"x"}, {"key": "n", "value": None}]
    empty = {"slot": 0, "topic": unique, "timestamp": NOW, "partition": 2, "kind": 0}
    given: list[dict[str, Any]] = [
        {**empty, "key": b"a", "value": b"1", "headers": header},
        {**empty, "key": b"a", "value": None, "timestamp": 0},
        {**empty, "key": b"a", "value": b"", "timestamp": -5, "headers": []},
        {**empty, "key": None, "value": b"2", "topic": f"{unique}-dead", "partition": 1, "kind": 1},
        {**empty, "key": b"a", "value": b"3", "timestamp": NOW + 1, "headers": header[:1]},
    ]
    rows = pa.Table.from_pylist([given[2], *given], schema=OUTPUT)
    parts = rows.slice(1, 1), rows.slice(2)  # of buffers that begin before them
    result = deliver(start(kafka, unique), 1, pa.concat_tables(parts))
    assert (result.rows, result.dead_letters, result.skipped) == (4, 1, ())
    assert set(result.phases) == {"open", "produce", "flush", "commit"}
    rows = read_committed(kafka, unique).to_pylist()
    assert [(r["key"], r["value"], r["timestamp"], r["headers"]) for r in rows] == [
        (b"a", b"1", NOW, header),
        (b"a", None, 1, []),
        (b"a", b"", 1, []),
        (b"a", b"3", NOW + 1, header[:1]),
    ]
    assert {r["partition"] for r in rows} == {2}
    assert read_committed(kafka, f"{unique}-dead").to_pylist()[0]["partition"] == 1


@by_both
def test_order_is_kept_per_key(kafka: KafkaSettings, unique: str, output: Rows, way: str) -> None:
    create_topic(kafka, unique, 3)
    count = 50_000
    deliver(
        start(kafka, unique),
        1,
        output([(unique, b"k%d" % (i % 10), b"%08d" % i) for i in range(count)]),
    )
    last: dict[bytes, bytes] = {}
    rows = read_committed(kafka, unique)
    assert rows.num_rows == count
    for key, value in zip(
        rows.column("key").to_pylist(), rows.column("value").to_pylist(), strict=True
    ):
        assert last.get(key, b"") < value
        last[key] = value


def test_a_replay_writes_nothing(kafka: KafkaSettings, unique: str, output: Rows) -> None:
    create_topic(kafka, unique, 2)
    sink = start(kafka, unique)
    for batch in (1, 2, 3):
        deliver(sink, batch, output([(unique, b"k", b"%d" % batch)]))
    again = start(kafka, unique)
    for batch in (2, 3):
        result = deliver(again, batch, output([(unique, b"k", b"%d" % batch)]))
        assert (result.rows, result.skipped, result.phases) == (0, (0,), {})
    deliver(again, 4, output([(unique, b"k", b"4")]))
    assert values(kafka, unique) == [b"1", b"2", b"3", b"4"]


def test_delivered_is_decided_per_partition(
    kafka: KafkaSettings, unique: str, output: Rows
) -> None:
    create_topic(kafka, unique, 2)
    rows = [output([(unique, b"k", b"%d" % slot)], slot=slot) for slot in range(3)]
    deliver(start(kafka, unique), 1, rows[1])
    result = deliver(start(kafka, unique), 1, pa.concat_tables(rows))
    assert (result.rows, result.skipped) == (2, (1,))
    assert values(kafka, unique) == [b"0", b"1", b"2"]


@pytest.mark.parametrize("where", CRASH_POINTS)
@pytest.mark.parametrize(
    ("warm", "way"),
    [(False, WAYS[-1]), *((True, way) for way in WAYS)],
    indirect=["way"],
    ids=["first batch", *(f"later batch by {way}" for way in WAYS)],
)
def test_a_crash_anywhere(
    kafka: KafkaSettings, unique: str, output: Rows, where: str, warm: bool, way: str
) -> None:
    create_topic(kafka, unique, 2)
    expected = [b"%05d" % i for i in range(1000)]
    rows = output([(unique, b"k", value) for value in expected])
    sink = start(kafka, unique)
    if warm:
        expected.append(b"warm")
        deliver(sink, 1, output([(unique, b"k", b"warm")]))
        if where in OPENING:
            close_producers()
    reached: list[str] = []

    def crash(name: str) -> None:
        reached.append(name)
        if name == where:
            raise Crash

    with pytest.raises(Crash):
        deliver(sink, 2, rows, crash)
    again = start(kafka, unique)
    result = deliver(again, 2, rows)
    assert result.rows == (0 if where == "committed" else 1000)
    assert deliver(again, 3, output([(unique, b"k", b"next")])).rows == 1
    assert values(kafka, unique) == sorted([*expected, b"next"])
    points = CRASH_POINTS[len(OPENING) :] if warm and where not in OPENING else CRASH_POINTS
    assert reached == list(points[: points.index(where) + 1])


WORKER = """
import os, pickle, signal, sys
from kaflow_engine.connectors.run_log import Delivered
from kaflow_engine.connectors.kafka.delivery.deliver import deliver
from kaflow_engine.errors import ModelError, SinkError

sink, rows, where = pickle.load(sys.stdin.buffer)
def stop(name):
    if name == where:
        os.kill(os.getpid(), signal.SIGSTOP)
try:
    deliver(sink, 2, rows, stop)
except SinkError as error:
    print(error.message)
    sys.exit(error.exit_code)
"""


@pytest.mark.parametrize(
    ("where", "way"),
    [
        *((where, WAYS[-1]) for where in ("slot_claimed", "transaction_begun")),
        *(("before_commit", way) for way in WAYS),
    ],
    indirect=["way"],
)
def test_a_worker_that_slept_through_a_restart(
    kafka: KafkaSettings, unique: str, output: Rows, where: str, way: str
) -> None:
    create_topic(kafka, unique, 2)
    rows = output([(unique, b"k", b"%d" % i) for i in range(5)])
    worker = subprocess.Popen(
        [sys.executable, "-c", WORKER],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        env={**os.environ, "PYTHONPATH": str(ENGINE)},
    )
    assert worker.stdin is not None
    worker.stdin.write(pickle.dumps((start(kafka, unique), rows, where)))
    worker.stdin.close()
    worker.stdin = None
    _, status = os.waitpid(worker.pid, os.WUNTRACED)
    assert os.WIFSTOPPED(status)
    try:
        again = start(kafka, unique)
        assert deliver(again, 2, rows).rows == 5
    finally:
        worker.send_signal(signal.SIGCONT)
    printed, _ = worker.communicate(timeout=60)
    assert worker.returncode == SinkError.exit_code, printed
    assert b"has taken over" in printed
    assert values(kafka, unique) == [b"%d" % i for i in range(5)]
    assert start(kafka, unique).delivered == {0: Delivered(2, 5)}


@by_both
def test_at_least_once(kafka: KafkaSettings, unique: str, output: Rows, way: str) -> None:
    create_topic(kafka, unique, 2)
    sink = start(kafka, unique, exactly_once=False)
    for _ in range(2):
        result = deliver(sink, 1, output([(unique, b"k", b"v")]))
        assert set(result.phases) == {"open", "produce", "flush"}
    assert values(kafka, unique) == [b"v", b"v"]
    assert start(kafka, unique).delivered == {}


@by_both
@pytest.mark.parametrize("exactly_once", [True, False])
@pytest.mark.parametrize(
    ("size", "config", "message"),
    [
        (
            1_500_000,
            {},
            "a record is larger than the topic takes (writing 1,500,001 bytes to topic '{topic}')",
        ),
        (
            2_000,
            {"max.message.bytes": "1000", "compression.type": "uncompressed"},
            "a record is larger than the topic takes (writing 2,001 bytes to topic '{topic}')",
        ),
        (
            5,
            {"message.timestamp.before.max.ms": "1000"},
            "the topic does not take the record's timestamp (writing 6 bytes to topic '{topic}')",
        ),
    ],
)
def test_a_row_the_topic_refuses(
    kafka: KafkaSettings,
    unique: str,
    output: Rows,
    size: int,
    config: dict[str, str],
    message: str,
    exactly_once: bool,
    way: str,
) -> None:
    create_topic(kafka, unique, 1, config)
    sink = start(kafka, unique, exactly_once)
    rows = output([(unique, b"k", os.urandom(size))])
    if "before" in str(config):
        rows = rows.set_column(4, OUTPUT.field(4), pa.array([1], pa.int64()))
    with pytest.raises(SinkError) as caught:
        deliver(sink, 1, rows)
    assert caught.value.message == message.format(topic=unique)
    assert values(kafka, unique) == []
    # the worker goes on with another producer
    create_topic(kafka, f"{unique}-fine", 1)
    deliver(sink, 1, output([(f"{unique}-fine", b"k", b"v")]))
    assert values(kafka, f"{unique}-fine") == [b"v"]


@by_both
@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("{}-missing", "the topic does not exist (writing 2 bytes to topic '{}')"),
        ("{} x", "the brokers do not take the name of the topic (writing 2 bytes to topic '{}')"),
    ],
)
def test_a_topic_that_is_not_there(
    kafka: KafkaSettings, unique: str, output: Rows, name: str, message: str, way: str
) -> None:
    topic = name.format(unique)
    with pytest.raises(SinkError) as caught:
        deliver(start(kafka, unique), 1, output([(topic, b"k", b"v")]))
    assert caught.value.message == message.format(topic)


@pytest.mark.parametrize("way", WAYS, indirect=True)
def test_settings_that_the_client_refuses(way: str) -> None:
    wrong = KafkaSettings.of(["127.0.0.1:9"], {"linger.mss": "5"})
    with pytest.raises(ModelError, match=r"unknown Kafka property 'linger\.mss'"):
        row_producer.open_row_producer(wrong, {}, row_producer.Refusals())
