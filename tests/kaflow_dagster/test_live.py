"""A stream under supervision in a running Dagster, by what the page and the daemon do."""

# pyright: basic

import json
import os
import signal
from collections import Counter

import pytest

from kaflow_engine.connectors.kafka_admin import MissingTopic
from kaflow_engine.connectors.kafka_client import open_producer
from kaflow_engine.connectors.kafka_read import read_all
from tests.kaflow_dagster.live import Live

pytestmark = [pytest.mark.spark, pytest.mark.kafka, pytest.mark.services]

NAME = "enriched_events"
PATIENCE_S = 120
"""A quiet machine needs a fifth of it."""


@pytest.fixture(scope="module")
def kafka():
    """A broker of its own, because the project of `kaflow init` names its topics."""
    from kaflow_engine.testing.broker import Broker

    with Broker() as running:
        running.create_topic("user_events", 2)
        running.create_topic("user_profiles", 2)
        yield running


@pytest.fixture(scope="module")
def live(kafka, tmp_path_factory):
    with Live(tmp_path_factory.mktemp("live") / "shop", kafka.bootstrap) as running:
        yield running


class Feed:
    """Sends events of users that have a profile; every event has a number."""

    def __init__(self, kafka):
        self.kafka, self.sent = kafka.settings, 0
        self.producer = open_producer(self.kafka).api
        profile = {"user_id": "u", "subscription_tier": "gold", "country": "PT"}
        self.producer.produce("user_profiles", json.dumps(profile).encode(), b"u")

    def send(self, count=50):
        for _ in range(count):
            event = {"user_id": "u", "event_type": f"e{self.sent}", "timestamp": 1767225600000}
            self.producer.produce("user_events", json.dumps(event).encode(), b"u")
            self.sent += 1
        assert self.producer.flush(30) == 0

    def received(self):
        try:
            rows = read_all(self.kafka, NAME)["value"].to_pylist()
        except MissingTopic:
            return Counter()  # the first run creates it
        return Counter(json.loads(row)["event_type"] for row in rows)

    def complete(self):
        """Say whether every event has arrived, once."""
        return self.received() == Counter({f"e{n}": 1 for n in range(self.sent)})


def running(live):
    """Return the run that streams, if one does."""
    return next((r for r in live.runs(NAME) if r["status"] == "STARTED" and live.worker(r)), None)


def reason(live):
    ticks = live.ticks(NAME)
    return (ticks[0]["skipReason"] or "") if ticks else ""


def test_a_stream_is_kept_running(live, kafka):
    feed = Feed(kafka)
    feed.send()
    live.switch_on(NAME)
    first, _ = live.until(lambda: running(live), PATIENCE_S, "a run")
    live.until(feed.complete, PATIENCE_S, "the first rows")

    os.kill(live.worker(first), signal.SIGKILL)
    feed.send()
    second, _ = live.until(
        lambda: (found := running(live)) and found["runId"] != first["runId"] and found,
        PATIENCE_S,
        "a run after the kill",
    )
    live.until(feed.complete, PATIENCE_S, "rows after the kill")

    live.terminate(second)
    live.until(lambda: running(live) is None, PATIENCE_S, "the terminated run to end")
    live.until(lambda: reason(live).startswith("held"), PATIENCE_S, "the sensor to hold")
    assert "was terminated" in reason(live)
    feed.send()

    live.switch_off(NAME)
    live.switch_on(NAME)
    live.until(lambda: running(live), PATIENCE_S, "a run after the switch")
    live.until(feed.complete, PATIENCE_S, "rows after the switch")
    assert [r["status"] for r in live.runs(NAME)] == ["STARTED", "CANCELED", "FAILURE"]
