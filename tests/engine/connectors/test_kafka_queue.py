"""How rows are handed to a client, at whatever speed the brokers take them; without a broker."""

from types import SimpleNamespace

import pyarrow as pa
import pytest
from confluent_kafka import KafkaError, KafkaException

from kaflow_engine.connectors.kafka.delivery import queue as kafka_queue
from kaflow_engine.connectors.kafka.delivery.pace import Pace, pace_of
from kaflow_engine.connectors.kafka.delivery.queue import Outgoing, TooSlow
from kaflow_engine.flow.records import OUTPUT

SIZE = 10_000
"""Bytes of a row."""


class Brokers:
    """A client whose brokers take so many bytes a second; time passes only while it waits."""

    def __init__(self, per_second: float) -> None:
        self.now, self.per_second = 100.0, per_second
        self.sent: list[bytes] = []
        self._waiting = 0.0

    def __len__(self) -> int:
        return -int(-self._waiting // SIZE)

    def write(self, rows: pa.Table) -> None:
        self.sent += rows["value"].to_pylist()
        self._waiting += SIZE * rows.num_rows

    def poll(self, seconds: float) -> None:
        self.now += seconds
        self._waiting = max(0.0, self._waiting - seconds * self.per_second)

    def flush(self, seconds: float) -> int:
        self.poll(seconds)
        return len(self)


def outgoing(brokers: Brokers, rows: int, pace: Pace, monkeypatch: pytest.MonkeyPatch) -> Outgoing:
    monkeypatch.setattr(kafka_queue, "time", SimpleNamespace(monotonic=lambda: brokers.now))
    columns = {
        "slot": [0] * rows,
        "topic": ["t"] * rows,
        "key": [None] * rows,
        "value": [b"%010000d" % n for n in range(rows)],
        "timestamp": [5] * rows,
        "headers": [None] * rows,
        "partition": [None] * rows,
        "kind": [0] * rows,
        "source_partition": [None] * rows,
        "source_offset": [None] * rows,
    }
    writer = SimpleNamespace(
        client=SimpleNamespace(api=brokers), refusals=SimpleNamespace(found=[])
    )
    return Outgoing(writer, pa.table(columns, schema=OUTPUT), pace)  # type: ignore[arg-type]


@pytest.mark.parametrize("tries", [0, 3])
@pytest.mark.parametrize("timeout", [1_000, 60_000])
@pytest.mark.parametrize("per_second", [400_000, 1_000_000, 50_000_000])
def test_no_transaction_takes_as_long_as_brokers_let_it(
    per_second: float, timeout: int, tries: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    brokers, rows = Brokers(per_second), 2_000
    found = outgoing(brokers, rows, pace_of(timeout, tries), monkeypatch)
    delivered = 0
    while found.left:
        began = brokers.now
        delivered += found.fill().num_rows
        found.flush()
        assert brokers.now - began <= timeout / 1000 * 0.8
    assert delivered == rows
    assert brokers.sent == [b"%010000d" % n for n in range(rows)]


def test_without_transactions_nothing_ends_what_goes_on(monkeypatch: pytest.MonkeyPatch) -> None:
    brokers = Brokers(1_000)  # a row takes ten seconds
    found = outgoing(brokers, 100, pace_of(None), monkeypatch)
    assert found.fill().num_rows == 100
    found.flush()
    assert brokers.now > 1_000


def test_brokers_that_take_nothing_are_away(monkeypatch: pytest.MonkeyPatch) -> None:
    found = outgoing(Brokers(0), 2_000, pace_of(None), monkeypatch)
    with pytest.raises(KafkaException, match=r"(?i)timed.out"):
        found.fill()
    found = outgoing(Brokers(0), 3, pace_of(60_000), monkeypatch)
    found.fill()
    with pytest.raises(KafkaException, match=r"(?i)timed.out"):
        found.flush()


def test_a_row_that_brokers_refuse_is_not_delivered(monkeypatch: pytest.MonkeyPatch) -> None:
    """Reports of delivery count, and what is left in the queue too (D14 of SQLFlow)."""
    found = outgoing(Brokers(1_000_000), 3, pace_of(None), monkeypatch)
    found.fill()
    refused = SimpleNamespace(error=KafkaError(KafkaError.MSG_SIZE_TOO_LARGE))
    found._writer.refusals.found.append(refused)  # type: ignore[arg-type]  # as a report does
    with pytest.raises(KafkaException, match="MSG_SIZE_TOO_LARGE"):
        found.flush()


def test_brokers_that_are_too_slow_are_not_away(monkeypatch: pytest.MonkeyPatch) -> None:
    found = outgoing(Brokers(50_000), 2_000, pace_of(60_000), monkeypatch)
    found.fill()
    with pytest.raises(TooSlow):
        found.flush()
    slower = outgoing(Brokers(50_000), 2_000, pace_of(60_000, slower=3), monkeypatch)
    assert 0 < slower.fill().num_rows < 2_000
    slower.flush()
