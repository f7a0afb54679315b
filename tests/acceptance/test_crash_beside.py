"""A backfill beside its stream, of which rows still wait: each row is delivered once.

The stream is alive and stands still in the midst of its records. Meanwhile a backfill of what it is
done with is killed three times, and finished; then the stream goes on.
"""

from dataclasses import replace
from pathlib import Path

import pytest

from kaflow_engine.errors import NotSettled
from kaflow_engine.flow.flow import Backfill
from kaflow_engine.operators.watermark import WatermarkState
from tests.acceptance.crash_kinds import (
    FIRST_HOUR,
    ONCE_PER_RUN,
    TWO_HOURS,
    paused,
    run_all,
    values,
    wake_all,
)
from tests.acceptance.crash_pipeline import log_of

pytestmark = pytest.mark.kafka

HOUR = 3_600_000
WAITING = (FIRST_HOUR + 2 * HOUR, FIRST_HOUR + 3 * HOUR)
"""The watermark has passed it; rows of users that no one knows wait for another hour."""
FILLED = {"backfill": "topic", "refill": "table", "fill-several": "several"}
"""Kinds of backfills, and of their streams."""
STEPS = {
    "backfill": ("rows_produced", "committed", "commit_logged"),
    "refill": ("table_taken", "before_replace", "replaced"),
    "fill-several": ("committed", "before_replace", "replaced"),
}
"""Where they are killed, one after the other."""
PLACE = "before_batch"


@pytest.fixture(scope="module")
def beside(outputs, forks):
    """Streams, what became of the backfills beside them, and in the end of themselves."""
    orders = {}
    for kind, stream in FILLED.items():
        order = outputs.order(stream, f"beside-{kind}", on_error="dead_letter", most=30)
        orders[kind, PLACE] = replace(order, crash_at=f"{PLACE}:12")
    streams = paused(orders)
    stopped = run_all(forks, streams)
    assert not {case: end for case, end in stopped.items() if end.how != "stopped"}
    refused = {
        kind: forks.run([replace(orders[kind, PLACE], wanted=WAITING, crash_at="")])
        for kind in FILLED
    }
    marks = {kind: _watermark(orders[kind, PLACE]) for kind in FILLED}
    backfills = {kind: _killed_and_finished(forks, orders[kind, PLACE], kind) for kind in FILLED}
    return streams, marks, refused, backfills, wake_all(forks, stopped)


@pytest.fixture(scope="module")
def peace(outputs, forks):
    """What a stream does that is alone, and a backfill after it."""
    found = {}
    for kind, stream in FILLED.items():
        order = outputs.order(stream, f"after-{kind}", on_error="dead_letter", most=30)
        ends = [*forks.run([order]), *forks.run([replace(order, wanted=TWO_HOURS)])]
        assert [(end.how, end.said) for end in ends] == [("ended", "")] * 2
        found[kind] = outputs.read(order)
    return found


def _watermark(order):
    commit = log_of(Path(order.path), order.name).last_commit()
    return WatermarkState.from_json(commit.watermark).least


def _killed_and_finished(forks, order, kind):
    ends = []
    for point in (*STEPS[kind], ""):
        batch = "*" if point in ONCE_PER_RUN else "2"
        crash_at = f"{point}:{batch}" if point else ""
        ends += forks.run([replace(order, wanted=TWO_HOURS, crash_at=crash_at)])
    return ends


@pytest.mark.parametrize("kind", FILLED)
def test_a_range_is_refused_while_rows_of_it_wait(beside, kind):
    _, marks, refused, *_ = beside
    (end,) = refused[kind]
    wanted = Backfill(start=WAITING[0], end=WAITING[1])
    assert WAITING[1] < marks[kind] < WAITING[1] + HOUR
    assert end.exit_code == NotSettled.exit_code, end
    assert f"the stream of pipeline 'beside-{kind}' may still write rows of {wanted}" in end.said


@pytest.mark.parametrize("kind", FILLED)
def test_stream_and_backfill_deliver_each_row_once(outputs, beside, peace, kind):
    streams, _, _, backfills, woken = beside
    assert {end.said for end in backfills[kind]} == {""}
    assert [end.how for end in backfills[kind]] == [*["killed"] * 3, "ended"]
    assert (woken[kind, PLACE].how, woken[kind, PLACE].said) == ("ended", "")
    found = outputs.read(streams[kind, PLACE])
    assert found.counters == peace[kind].counters
    assert values(found) == values(peace[kind])  # of a key, those of the two take turns
