"""A Dagster instance with the project of `kaflow init`, which tests of one file share."""
# pyright: basic

import pytest

from kaflow_engine.testing.services.broker import Broker
from tests.kaflow_dagster.live import Live


@pytest.fixture(scope="module")
def kafka():
    """A broker of its own, because the project of `kaflow init` names its topics."""
    with Broker() as running:
        running.create_topic("user_events", 2)
        running.create_topic("user_profiles", 2)
        yield running


@pytest.fixture(scope="module")
def live(kafka, tmp_path_factory):
    """The project, loaded by a Dagster of its own."""
    with Live(tmp_path_factory.mktemp("live") / "shop", kafka.bootstrap) as running:
        yield running
