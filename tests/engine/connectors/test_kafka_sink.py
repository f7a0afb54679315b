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
from kaflow_engine.connectors.kafka.delivery.deliver import close_producers, deliver
from kaflow_engine.connectors.run_log import Delivered
from kaflow_engine.errors import SinkError
from kaflow_engine.flow.records import OUTPUT
from tests.committed import read_committed
from tests.engine.connectors.producers_here import WAYS, by_both, start, values

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


class Crash(BaseException):
    """Ends a task as a killed process would."""


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
