"""What cannot be delivered in one transaction is delivered in several, each row once."""

from collections.abc import Callable, Iterator
from dataclasses import replace

import pyarrow as pa
import pytest

from kaflow_engine.connectors.kafka.admin import create_topic, offsets
from kaflow_engine.connectors.kafka.client import KafkaSettings, open_consumer
from kaflow_engine.connectors.kafka.delivery import deliver as kafka_sink
from kaflow_engine.connectors.kafka.delivery.deliver import SinkSettings, close_producers, deliver
from kaflow_engine.connectors.kafka.delivery.pace import Pace
from kaflow_engine.connectors.kafka.errors import OutOfTime, TransactionTimeoutRefused
from kaflow_engine.connectors.kafka.run_log.control import ControlTopic
from kaflow_engine.connectors.run_log import Delivered
from kaflow_engine.errors import SinkError, StateError
from kaflow_engine.runtime.failures.failures import is_retryable
from kaflow_engine.testing.services.broker import Broker
from tests.committed import read_committed
from tests.engine.connectors.producers_here import start

pytestmark = pytest.mark.kafka

Rows = Callable[..., pa.Table]
SMALL = Pace(fill=0.0, queued=40, flush=30.0, stall=30.0)
"""A transaction for each ten bytes."""


class Crash(BaseException):
    """Ends a task as a killed process would."""


@pytest.fixture(scope="module")
def strict() -> Iterator[Broker]:
    """A broker that looks for transactions that are over their time, and allows them a minute."""
    often = "transaction.abort.timed.out.transaction.cleanup.interval.ms"
    most = {"transaction.max.timeout.ms": "60000", often: "100"}
    with Broker(properties=most) as running:
        yield running
    close_producers()


@pytest.fixture
def in_pieces(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(kafka_sink, "pace_of", lambda *about: SMALL)


def values(kafka: KafkaSettings, topic: str) -> list[bytes]:
    return read_committed(kafka, topic).column("value").to_pylist()


def batch(topic: str, output: Rows) -> pa.Table:
    """Rows of two delivery partitions, one after the other."""
    some = [output([(topic, b"k", b"%04d" % n)], slot=n % 2) for n in range(20)]
    return pa.concat_tables(some)


def run_until(sink: SinkSettings, rows: pa.Table, point: str, times: int) -> None:
    left = times

    def crash(name: str) -> None:
        nonlocal left
        left -= name == point
        if left == 0:
            raise Crash

    with pytest.raises(Crash):
        deliver(sink, 1, rows, crash, alone=True)


@pytest.mark.usefixtures("in_pieces")
def test_pieces_are_transactions_of_their_own(
    kafka: KafkaSettings, unique: str, output: Rows
) -> None:
    create_topic(kafka, unique, 1)
    reached: list[str] = []
    result = deliver(start(kafka, unique), 1, batch(unique, output), reached.append)
    assert (result.rows, result.skipped) == (20, ())
    assert (reached.count("piece_committed"), reached.count("committed")) == (9, 1)
    assert values(kafka, unique) == [b"%04d" % n for n in range(20)]
    assert start(kafka, unique).delivered == {0: Delivered(1, 10), 1: Delivered(1, 10)}


@pytest.mark.usefixtures("in_pieces")
@pytest.mark.parametrize("point", ["piece_committed", "before_commit", "marker_produced"])
def test_a_replay_goes_on_behind_the_last_piece(
    kafka: KafkaSettings, unique: str, output: Rows, point: str
) -> None:
    create_topic(kafka, unique, 1)
    rows = batch(unique, output)
    for _ in range(3):  # each try delivers some more
        run_until(start(kafka, unique), rows, point, times=2)
    sink = start(kafka, unique)
    assert all(found.batch == 1 and found.digest for found in sink.delivered.values())
    with pytest.raises(StateError, match="they are others now that it runs again"):
        deliver(sink, 1, batch(unique, output).slice(2))
    assert deliver(sink, 1, rows, alone=True).skipped == (0, 1)
    assert values(kafka, unique) == [b"%04d" % n for n in range(20)]
    again = start(kafka, unique)
    assert again.delivered == {0: Delivered(1, 10), 1: Delivered(1, 10)}
    assert deliver(again, 1, rows, alone=True).rows == 0


def aborted(kafka: KafkaSettings, topic: str) -> None:
    """Wait until nothing in a topic is open."""
    with_marks = -1
    consumer = open_consumer(kafka).api
    while True:
        stable = offsets(kafka, {topic: 1}, "latest")[topic][0]
        end = offsets(kafka, {topic: 1}, "latest", committed=False)[topic][0]
        if stable == end and end > with_marks:
            consumer.close()
            return


@pytest.mark.parametrize("point", ["rows_produced", "before_commit"])
def test_a_broker_s_abort_for_time_is_no_takeover(
    strict: Broker, unique: str, output: Rows, point: str
) -> None:
    kafka = replace(strict.settings, transaction_timeout=1000)
    create_topic(kafka, unique, 1)
    sink = start(kafka, unique)
    rows = output([(unique, b"k", b"v")])

    def linger(name: str) -> None:
        if name == point:
            kafka_sink.writer_of(sink, lambda name: None).client.api.flush(10)
            aborted(kafka, unique)

    with pytest.raises(OutOfTime) as caught:
        deliver(sink, 1, rows, linger)
    assert "longer than the 1 s of 'kafka.transaction_timeout' (writing to " in str(caught.value)
    assert is_retryable(caught.value)
    assert deliver(start(kafka, unique), 1, rows).rows == 1
    assert values(kafka, unique) == [b"v"]


def test_a_takeover_is_no_abort_for_time(kafka: KafkaSettings, unique: str, output: Rows) -> None:
    create_topic(kafka, unique, 1)
    sink = start(kafka, unique)

    def taken_over(name: str) -> None:
        if name == "before_commit":
            start(kafka, unique)

    with pytest.raises(SinkError, match="has taken over") as caught:
        deliver(sink, 1, output([(unique, b"k", b"v")]), taken_over)
    assert not isinstance(caught.value, OutOfTime)
    assert values(kafka, unique) == []


def test_a_driver_that_stood_still_is_not_taken_over(strict: Broker, unique: str) -> None:
    kafka = replace(strict.settings, transaction_timeout=1000)
    control = ControlTopic(kafka, unique)
    control.start_run("s1", 1)
    driver = control._driver
    assert driver is not None
    begin = driver.api.begin_transaction

    class Slow:
        """A client that stands still behind its first record."""

        def __getattr__(self, name: str) -> object:
            return getattr(driver.api, name)

        def begin_transaction(self) -> None:
            begin()
            driver.api.produce(control.topic, b'{"epoch":1}', b'{"id":"x","kind":"slot"}', 0)
            driver.api.flush(10)
            aborted(kafka, control.topic)

    control._driver = replace(driver, api=Slow())  # type: ignore[arg-type]
    with pytest.raises(OutOfTime):
        control.put_batch(1, {})
    assert control.start_run("s1", 1).epoch == 2
    control.put_batch(1, {})


def test_brokers_that_allow_less_time_are_named(strict: Broker, unique: str) -> None:
    kafka = replace(strict.settings, transaction_timeout=61_000)
    with pytest.raises(TransactionTimeoutRefused) as caught:
        ControlTopic(kafka, unique).start_run("s1", 1)
    assert "as long as 'kafka.transaction_timeout' says" in caught.value.message
    assert "'transaction.max.timeout.ms' of the brokers" in str(caught.value)
    assert not is_retryable(caught.value)
