"""What goes into and comes out of the stream of a live project, and which run it has."""
# pyright: basic

import json
from collections import Counter

from kaflow_dagster.runs.names import VERSION
from kaflow_engine.connectors.kafka.admin import MissingTopic
from kaflow_engine.connectors.kafka.client import open_producer
from kaflow_engine.connectors.kafka.read import read_all

NAME = "enriched_events"
PATIENCE_S = 300
"""A quiet machine needs a fifth of it."""


class Feed:
    """Sends events of users that have a profile; every event has a number."""

    def __init__(self, kafka, prefix="e"):
        self.kafka, self.sent, self.prefix = kafka.settings, 0, prefix
        self.producer = open_producer(self.kafka).api
        profile = {"user_id": "u", "subscription_tier": "gold", "country": "PT"}
        self.producer.produce("user_profiles", json.dumps(profile).encode(), b"u")

    def send(self, count=50):
        for _ in range(count):
            event = {
                "user_id": "u",
                "event_type": f"{self.prefix}{self.sent}",
                "timestamp": 1767225600000,
            }
            self.producer.produce("user_events", json.dumps(event).encode(), b"u")
            self.sent += 1
        assert self.producer.flush(30) == 0

    def received(self):
        try:
            rows = read_all(self.kafka, NAME)["value"].to_pylist()
        except MissingTopic:
            return Counter()  # the first run creates it
        kinds = (json.loads(row)["event_type"] for row in rows)
        return Counter(kind for kind in kinds if kind.startswith(self.prefix))

    def complete(self):
        """Say whether every event has arrived, once."""
        return self.received() == Counter({f"{self.prefix}{n}": 1 for n in range(self.sent)})


def running(live):
    """Return the run that streams, if one does."""
    return next((r for r in live.runs(NAME) if r["status"] == "STARTED" and live.worker(r)), None)


def reason(live):
    ticks = live.ticks(NAME)
    return (ticks[0]["skipReason"] or "") if ticks else ""


def version(run):
    return {tag["key"]: tag["value"] for tag in run["tags"]}[VERSION]


def next_run(live, last):
    """Return the run after the last one, once it streams."""
    found = running(live)
    return found if found and found["runId"] != last["runId"] else None
