"""A stream under supervision in a running Dagster: killed, terminated, hung.

One instance for all of them, because each start takes its time: a test takes the stream as it is.
"""
# pyright: basic

import os
import signal
from pathlib import Path

import pytest

from tests.kaflow_dagster.live_stream import NAME, PATIENCE_S, Feed, next_run, reason, running

pytestmark = [pytest.mark.spark, pytest.mark.kafka, pytest.mark.services]


def test_a_stream_is_kept_running(live, kafka):
    feed = Feed(kafka)
    feed.send()
    live.switch_on(NAME)
    first = live.until(lambda: running(live), PATIENCE_S, "a run")
    live.until(feed.complete, PATIENCE_S, "the first rows")

    os.kill(live.worker(first), signal.SIGKILL)
    feed.send()
    second = live.until(lambda: next_run(live, first), PATIENCE_S, "a run after the kill")
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


def test_a_run_that_hangs_is_killed_and_another_one_streams(live, kafka):
    feed = Feed(kafka, "h")
    feed.send()
    live.switch_on(NAME)
    hung = live.until(lambda: running(live), PATIENCE_S, "a run")
    live.until(feed.complete, PATIENCE_S, "the first rows")
    pid = live.worker(hung)
    os.kill(pid, signal.SIGSTOP)
    feed.send()
    live.until(lambda: next_run(live, hung), 2 * PATIENCE_S, "a run after the hung")
    live.until(feed.complete, PATIENCE_S, "rows after the hung run")
    assert not Path(f"/proc/{pid}/cmdline").exists() or not Path(f"/proc/{pid}/cmdline").read_text()
