"""A stream under supervision in a running Dagster, by what the page and the daemon do."""

# pyright: basic

import json
import os
import signal
import sys
from collections import Counter
from pathlib import Path

import pytest

from kaflow_dagster.names import VERSION
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


def test_a_stream_is_kept_running(live, kafka):
    feed = Feed(kafka)
    feed.send()
    live.switch_on(NAME)
    first, _ = live.until(lambda: running(live), PATIENCE_S, "a run")
    live.until(feed.complete, PATIENCE_S, "the first rows")

    os.kill(live.worker(first), signal.SIGKILL)
    feed.send()
    second, seconds = live.until(lambda: next_run(live, first), PATIENCE_S, "a run after the kill")
    sys.stdout.write(f"streams again {seconds:.0f} s after the kill\n")
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


def version(run):
    return {tag["key"]: tag["value"] for tag in run["tags"]}[VERSION]


def next_run(live, last):
    """Return the run after the last one, once it streams."""
    found = running(live)
    return found if found and found["runId"] != last["runId"] else None


def test_a_run_that_hangs_is_killed_and_another_one_streams(live, kafka):
    feed = Feed(kafka, "h")
    feed.send()
    live.switch_on(NAME)
    hung, _ = live.until(lambda: running(live), PATIENCE_S, "a run")
    live.until(feed.complete, PATIENCE_S, "the first rows")
    pid = live.worker(hung)
    os.kill(pid, signal.SIGSTOP)
    feed.send()
    _, seconds = live.until(lambda: next_run(live, hung), 2 * PATIENCE_S, "a run after the hung")
    live.until(feed.complete, PATIENCE_S, "rows after the hung run")
    assert not Path(f"/proc/{pid}/cmdline").exists() or not Path(f"/proc/{pid}/cmdline").read_text()
    sys.stdout.write(f"streams again {seconds:.0f} s after the process was stopped\n")


def test_a_changed_pipeline_is_taken_up_and_a_broken_one_is_shown(live, kafka):
    feed = Feed(kafka, "c")
    feed.send()
    live.switch_on(NAME)
    old, _ = live.until(lambda: running(live), PATIENCE_S, "a run")
    live.until(feed.complete, PATIENCE_S, "the first rows")
    model = live.folder / "models" / "enriched_events.sql"
    text = model.read_text()
    model.write_text(f"{text}\nWHERE e.event_type <> 'nothing'\n")
    live.folder.joinpath("pipelines", "broken.yaml").write_text("name: broken\nqery: SELECT 1\n")
    live.instance.reload()
    new, seconds = live.until(lambda: next_run(live, old), PATIENCE_S, "a run of the new plan")
    feed.send()
    live.until(feed.complete, PATIENCE_S, "rows of the new plan")
    sys.stdout.write(f"the new plan streams {seconds:.0f} s after the reload\n")
    assert version(new) != version(old)
    assert [r["status"] for r in live.runs(NAME)][:2] == ["STARTED", "SUCCESS"]
    live.instance.switch_on("supervise__broken")
    live.until(lambda: live.ticks("broken"), PATIENCE_S, "a tick of the broken pipeline")
    told = live.ticks("broken")[0]["skipReason"]
    assert told.startswith("broken: ")
    assert "pipelines/broken.yaml:2: unknown key 'qery'" in told


def jvm_of(pid):
    """Return the JVM below a process."""
    for stat in Path("/proc").glob("[0-9]*/stat"):
        text = stat.read_text() if stat.exists() else ""
        if "(java)" in text and int(text[text.rindex(")") + 2 :].split()[1]) == pid:
            return int(stat.parent.name)
    raise AssertionError(f"process {pid} has no JVM")


def test_a_stream_outlives_dagster_and_comes_back_without_its_jvm(live, kafka):
    feed = Feed(kafka, "r")
    live.switch_on(NAME)
    run, _ = live.until(lambda: running(live), PATIENCE_S, "a run")
    feed.send()
    live.until(feed.complete, PATIENCE_S, "the first rows")
    live.restart()  # page, daemon and code server
    feed.send()
    live.until(feed.complete, PATIENCE_S, "rows after the restart")
    live.until(lambda: live.ticks(NAME), PATIENCE_S, "a tick of the new daemon")
    assert running(live)["runId"] == run["runId"]

    os.kill(jvm_of(live.worker(run)), signal.SIGKILL)
    feed.send()
    _, seconds = live.until(feed.complete, 2 * PATIENCE_S, "rows after the death of the JVM")
    sys.stdout.write(f"rows again {seconds:.0f} s after the death of the JVM\n")
