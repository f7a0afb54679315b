"""A stream under supervision in a running Dagster: another plan, another Dagster, no JVM.

One instance for all of them, because each start takes its time: a test takes the stream as it is.
"""
# pyright: basic

import os
import signal

import pytest

from kaflow_engine.testing.services.processes import Processes
from tests.kaflow_dagster.live_stream import NAME, PATIENCE_S, Feed, next_run, running, version

pytestmark = [pytest.mark.spark, pytest.mark.kafka, pytest.mark.services]


def test_a_changed_pipeline_is_taken_up_and_a_broken_one_is_shown(live, kafka):
    feed = Feed(kafka, "c")
    feed.send()
    live.switch_on(NAME)
    old = live.until(lambda: running(live), PATIENCE_S, "a run")
    live.until(feed.complete, PATIENCE_S, "the first rows")
    model = live.folder / "models" / "enriched_events.sql"
    text = model.read_text()
    model.write_text(f"{text}\nWHERE e.event_type <> 'nothing'\n")
    live.folder.joinpath("pipelines", "broken.yaml").write_text("name: broken\nqery: SELECT 1\n")
    live.instance.reload()
    new = live.until(lambda: next_run(live, old), PATIENCE_S, "a run of the new plan")
    feed.send()
    live.until(feed.complete, PATIENCE_S, "rows of the new plan")
    assert version(new) != version(old)
    assert [r["status"] for r in live.runs(NAME)][:2] == ["STARTED", "SUCCESS"]
    live.instance.switch_on("supervise__broken")
    reason = live.until(lambda: why_broken(live), PATIENCE_S, "why the broken pipeline is not run")
    assert reason.startswith("broken: ")
    assert "pipelines/broken.yaml:2: unknown key 'qery'" in reason


def why_broken(live):
    """Return what the newest tick of the broken pipeline says; one that has begun says nothing."""
    return next((tick["skipReason"] for tick in live.ticks("broken") if tick["skipReason"]), None)


def jvm_of(pid):
    """Return the JVM below a process."""
    now = Processes()
    (jvm,) = [child for child in now.children(pid) if now[child].name == "java"]
    return jvm


def test_a_stream_outlives_dagster_and_comes_back_without_its_jvm(live, kafka):
    feed = Feed(kafka, "r")
    live.switch_on(NAME)
    run = live.until(lambda: running(live), PATIENCE_S, "a run")
    feed.send()
    live.until(feed.complete, PATIENCE_S, "the first rows")
    live.restart()  # page, daemon and code server
    feed.send()
    live.until(feed.complete, PATIENCE_S, "rows after the restart")
    live.until(lambda: live.ticks(NAME), PATIENCE_S, "a tick of the new daemon")
    assert running(live)["runId"] == run["runId"]

    os.kill(jvm_of(live.worker(run)), signal.SIGKILL)
    feed.send()
    live.until(feed.complete, 2 * PATIENCE_S, "rows after the death of the JVM")
    assert running(live)["runId"] == run["runId"]
