"""A backfill gives the rows that the stream gave for the same event times, and only those."""
# pyright: basic

import threading
from dataclasses import replace

import pytest

from kaflow_engine.connectors.kafka.admin import describe
from kaflow_engine.connectors.kafka.read import read_all
from kaflow_engine.errors import StateError
from kaflow_engine.runtime.drive.bounded import backfill_plan
from kaflow_engine.runtime.planning.prepare import prepare
from tests.acceptance.run_child import killed_at
from tests.acceptance.three_days import (
    DAY,
    MINUTE,
    SECOND,
    SIDES,
    START,
    config_for,
    load,
    spec_of,
    topic_of,
)

pytestmark = [pytest.mark.spark, pytest.mark.kafka]

ALONE = replace(SECOND, force=True)
"""Without a stream."""


@pytest.fixture(scope="module")
def topics(broker):
    load(broker, "backfilled")
    return "backfilled"


@pytest.mark.parametrize("side", SIDES)
def test_backfill_gives_what_the_stream_gave(broker, spark, topics, tmp_path, side):
    from kaflow_engine.runtime.application import run_backfill, run_pipelines

    config = config_for(broker, tmp_path)
    (planned,) = prepare([spec_of(side, topics)], config)
    plan = planned.plan
    run_pipelines([plan], config, until_caught_up=True, spark=spark)
    summary = run_backfill(plan, config, SECOND, spark=spark)
    streamed, again = halves(broker, topic_of(plan))
    wanted = [row for row in streamed if SECOND.start <= row[0] < SECOND.end]
    assert summary.pipelines[plan.name].ending == "caught up"
    assert len(wanted) > 40
    assert by_key(again) == by_key(wanted)
    letters, again = halves(broker, plan.dead_letter_topic)
    assert (len(letters), [row[0] for row in again]) == (2, [START + DAY + MINUTE])
    assert not list(tmp_path.glob("*backfill-*"))
    control = f"__kaflow.{backfill_plan(plan, SECOND).pipeline}"
    assert not describe(broker.settings, [control])[control].exists


def test_interrupted_backfill_goes_on(broker, spark, topics, tmp_path):
    from kaflow_engine.runtime.application import run_backfill

    config = config_for(broker, tmp_path, max_records=40)
    spec = spec_of("event", topics, output="resumed")
    (planned,) = prepare([spec], config)
    stop = threading.Event()

    def stop_soon(progress):
        if progress.batch == 2:
            stop.set()

    first = run_backfill(planned.plan, config, ALONE, on_progress=stop_soon, stop=stop, spark=spark)
    assert first.pipelines[planned.plan.name].ending == "drained"
    killed_at("committed", 4, spec, config, ALONE)
    second = run_backfill(planned.plan, config, ALONE, spark=spark)
    assert second.pipelines[planned.plan.name].ending == "caught up"
    assert second.pipelines[planned.plan.name].batches > 2
    whole = prepare([spec_of("event", topics, output="whole")], config_for(broker, tmp_path))[0]
    run_backfill(whole.plan, config_for(broker, tmp_path), ALONE, spark=spark)
    resumed, expected = (halves(broker, topic_of(each.plan))[1] for each in (planned, whole))
    assert by_key(resumed) == by_key(expected)


def test_backfill_of_another_version_is_refused(broker, spark, topics, tmp_path):
    from kaflow_engine.runtime.application import run_backfill

    config = config_for(broker, tmp_path, max_records=40)
    (planned,) = prepare([spec_of("alone", topics, output="versions")], config)
    stop = threading.Event()
    stop.set()
    run_backfill(planned.plan, config, ALONE, stop=stop, spark=spark)
    changed = spec_of("alone", topics, output="versions", more=" AND c.id > 0")
    (planned,) = prepare([changed], config)
    with pytest.raises(StateError, match="begun with another version of it") as caught:
        run_backfill(planned.plan, config, ALONE, spark=spark)
    assert caught.value.hint == "add --restart to begin it again"
    done = run_backfill(planned.plan, config, ALONE, restart=True, spark=spark)
    assert done.pipelines[planned.plan.name].ending == "caught up"


def halves(broker, topic):
    """Return what the stream wrote, and what the backfill did."""
    parts = ([], [])
    for row in read_all(broker.settings, topic).to_pylist():
        headers = {header["key"]: header["value"] for header in row["headers"] or ()}
        mark = headers.get("kaflow.backfill")
        assert mark in (None, b"2026-01-02T00:00:00Z/2026-01-03T00:00:00Z")
        parts[mark is not None].append((row["timestamp"], row["key"], row["value"]))
    return parts


def by_key(rows):
    """Return the rows of each key in their order."""
    found = {}
    for at, key, value in rows:
        found.setdefault(key, []).append((at, value))
    return found
