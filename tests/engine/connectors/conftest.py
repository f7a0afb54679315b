"""A broker's settings, and rows to deliver."""

from collections.abc import Callable, Iterable, Iterator

import pyarrow as pa
import pytest

from kaflow_engine.connectors.kafka.client import KafkaSettings
from kaflow_engine.connectors.kafka.delivery import row_producer
from kaflow_engine.connectors.kafka.delivery.deliver import close_producers
from kaflow_engine.connectors.kafka.native.library import VARIABLE
from kaflow_engine.flow.records import OUTPUT

NOW = 1_795_296_000_000


@pytest.fixture
def kafka(broker) -> Iterator[KafkaSettings]:
    """Settings for the broker; this process's producers are closed at the end."""
    yield KafkaSettings.of([broker.bootstrap])
    close_producers()


@pytest.fixture
def output() -> Callable[..., pa.Table]:
    """Makes OUTPUT rows of (topic, key, value) triples, all in one delivery partition."""

    def rows(triples: Iterable[tuple[str, bytes | None, bytes | None]], slot: int = 0) -> pa.Table:
        return pa.Table.from_pylist(
            [
                {
                    "slot": slot,
                    "topic": topic,
                    "key": key,
                    "value": value,
                    "timestamp": NOW + i,
                    "headers": None,
                    "partition": None,
                    "kind": 0,
                }
                for i, (topic, key, value) in enumerate(triples)
            ],
            schema=OUTPUT,
        )

    return rows


@pytest.fixture
def way(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    """Which producer writes: see `WAYS`."""
    if request.param == "python":
        monkeypatch.setenv(VARIABLE, "off")  # of processes that the test starts, too
        monkeypatch.setattr(row_producer, "library", lambda: None)
    return request.param
