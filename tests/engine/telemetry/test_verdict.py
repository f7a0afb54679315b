"""Verdicts as rows: what is known of a pipeline, and what is said."""

import pytest

from kaflow_engine.telemetry.progress import Progress
from kaflow_engine.telemetry.verdict import judge

BEHIND = {"state": "running", "lag": {"a": 500}, "busy": 0.97}
READ = {"state": "running", "lag": {"a": 0}, "busy": 0.1}


@pytest.mark.parametrize(
    ("known", "kind", "why"),
    [
        (
            {"state": "standby", "waits_for": "another run holds 'x'"},
            "standby",
            "another run holds 'x'; this process takes over when that one ends",
        ),
        ({}, "starting", "nothing has run yet"),
        (
            {"state": "loading dimensions", "lag": {"a": 7}},
            "starting",
            "loading dimensions, 7 offsets left",
        ),
        ({"state": "stopped"}, "stopped", "it was asked to, or has read all"),
        ({"state": "failed", "last_error": "no broker"}, "failed", "no broker"),
        (
            {"state": "degraded", "failures": 2, "last_error": "no broker"},
            "retrying",
            "2 in a row: no broker",
        ),
        (READ, "waiting for input", "all topics are read; a batch runs 10% of the time"),
        (
            BEHIND | {"steps": {"input": 6.0, "sql": 4.0}},
            "source behind",
            "500 offsets are unread; input take 60% of the time of tasks",
        ),
        (
            BEHIND | {"steps": {"input": 2.0, "exchange": 3.0, "sql": 5.0}},
            "compute bound",
            "500 offsets are unread; exchange and sql take 80% of the time of tasks",
        ),
        (
            BEHIND | {"steps": {"sql": 9.0, "input": 1.0}, "skew": 0.9},
            "compute bound",
            "500 offsets are unread; exchange and sql take 90% of the time of tasks; one task does "
            "90% of its stage, as with a hot key",
        ),
        (
            BEHIND | {"steps": {"state_read": 3.0, "state_write": 3.0, "sql": 4.0}},
            "state bound",
            "500 offsets are unread; state read and state write take 60% of the time of tasks",
        ),
        (
            BEHIND | {"steps": {"produce": 3.0, "commit": 4.0, "sql": 3.0}},
            "sink bound",
            "500 offsets are unread; produce and commit take 70% of the time of tasks",
        ),
        (
            READ
            | {
                "counters": {"waiting": 3},
                "newest": {"a": 300_000, "b": 10_000, "c": 900_000},
                "holder_newest": 300_000,
                "holder": ("b", 1),
                "holder_at": 10_000,
            },
            "watermark held",
            "by topic b partition 1, which is 290 s behind the newest; 3 rows wait",
        ),
        (
            READ | {"counters": {"waiting": 1}, "holder_newest": 5, "holder": ("b", 0)},
            "watermark held",
            "by topic b partition 0, which has no record yet; 1 rows wait",
        ),
        (
            READ | {"holder_newest": 300_000, "holder": ("b", 0)},
            "waiting for input",
            "all topics are read; a batch runs 10% of the time",
        ),
        (
            READ
            | {
                "counters": {"waiting": 3},
                "newest": {"a": 30_000, "c": 900_000},
                "holder_newest": 30_000,
                "holder": ("a", 1),
                "holder_at": 10_000,
            },
            "waiting for input",
            "all topics are read; a batch runs 10% of the time",
        ),
    ],
)
def test_the_verdict(known, kind, why):
    found = judge(Progress(pipeline="p", **known))
    assert (found.kind, found.why) == (kind, why)


def test_the_evidence_holds_the_numbers():
    at = Progress(pipeline="p", **BEHIND, steps={"sql": 9.0, "input": 1.0}, skew=0.9)
    found = judge(at).evidence
    assert found == {
        "lag": 500,
        "busy": 0.97,
        "input": 0.1,
        "exchange": 0,
        "state_read": 0,
        "sql": 0.9,
        "state_write": 0,
        "produce": 0,
        "commit": 0,
        "skew": 0.9,
    }
