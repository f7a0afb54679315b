"""What tests share that crash runs without Spark."""

from pathlib import Path

import pytest

from kaflow_engine.testing.broker import Broker
from tests.acceptance.crash_here import Forks, Order
from tests.acceptance.crash_pipeline import create_outputs, delivered, load_topics, log_of

EVENTS = 240


@pytest.fixture(scope="module")
def crash_broker():
    """A broker of its own, because it is restarted."""
    with Broker() as running:
        load_topics(running.settings, "in", EVENTS)
        yield running


@pytest.fixture(scope="module")
def forks():
    """Runs pipelines in forked processes."""
    with Forks() as found:
        yield found


@pytest.fixture(scope="module")
def order(crash_broker, tmp_path_factory):
    """A run in peace, of which tests make others."""
    path = tmp_path_factory.mktemp("crashes")
    return Order(name="clean", inputs="in", broker=crash_broker.bootstrap, path=str(path))


@pytest.fixture(scope="module")
def peace(crash_broker, forks, order):
    """What a run in peace does."""
    create_outputs(crash_broker.settings, order.name)
    (end,) = forks.run([order])
    assert (end.how, end.said) == ("ended", "")
    found = delivered(crash_broker.settings, order.name, log_of(Path(order.path), order.name))
    assert found.counters["emitted"] > 200
    assert len(found.letters) > 5
    return found
