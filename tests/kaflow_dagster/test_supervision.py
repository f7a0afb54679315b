"""Every situation of a supervised pipeline, and what is done about it."""

import pytest

from kaflow_dagster.streams.supervision import (
    Decision,
    DesiredState,
    Session,
    SupervisionLimits,
    decide,
)

NOW = 10_000.0
DESIRED = {"pipeline": "p", "version": "v1", "since": 1_000.0}
RUNNING = {"run_id": "r1", "status": "running", "version": "v1", "began": 9_000, "heard": 9_990}
FAILED = {"run_id": "r1", "status": "failed", "version": "v1", "began": 9_960, "ended": 9_990}
CANCELLED = {"run_id": "r1", "status": "cancelled", "began": 9_000, "ended": 9_990}


def failed(*ends: float, lived: float = 10) -> list[dict]:
    return [{**FAILED, "run_id": f"r{end:.0f}", "began": end - lived, "ended": end} for end in ends]


ROWS = [
    ("nothing ran yet", [], {}, ("launch", None, "p:first")),
    ("it waits in the queue", [{"run_id": "r1", "status": "waiting"}], {}, ("ok", None, None)),
    ("it streams", [RUNNING], {}, ("ok", None, None)),
    ("it is silent", [{**RUNNING, "heard": 9_930}], {}, ("reap", "r1", None)),
    ("it has just begun", [{**RUNNING, "began": 9_950, "heard": 0}], {}, ("ok", None, None)),
    ("it hangs at its start", [{**RUNNING, "heard": 0}], {}, ("reap", "r1", None)),
    (
        "it is silent while it drains",
        [{**RUNNING, "heard": 9_900, "draining": True}],
        {},
        ("ok", None, None),
    ),
    (
        "it is silent for long while it drains",
        [{**RUNNING, "heard": 9_000, "draining": True}],
        {},
        ("reap", "r1", None),
    ),
    (
        "an older one hangs beside a newer one",
        [RUNNING, {**RUNNING, "run_id": "r0", "heard": 9_000}],
        {},
        ("reap", "r0", None),
    ),
    ("the plan has changed", [RUNNING], {"version": "v2"}, ("drain", "r1", None)),
    (
        "the plan has changed, it drains already",
        [{**RUNNING, "draining": True}],
        {"version": "v2"},
        ("ok", None, None),
    ),
    (
        "the plan has changed and does not fit the state",
        [RUNNING],
        {"version": "v2", "unfit": "the join key differs"},
        ("ok", None, None),
    ),
    (
        "the plan does not fit, and nothing runs",
        [FAILED],
        {"version": "v2", "unfit": "the join key differs"},
        ("held", None, None),
    ),
    (
        "it has run for a day",
        [{**RUNNING, "began": NOW - 86_401}],
        {},
        ("drain", "r1", None),
    ),
    ("it was drained", [{**FAILED, "status": "done"}], {}, ("launch", None, "p:r1")),
    ("it was terminated", [CANCELLED], {}, ("held", None, None)),
    (
        "it was terminated, then switched off and on",
        [CANCELLED],
        {"since": 9_995.0},
        ("launch", None, "p:r1"),
    ),
    ("it failed a second ago", failed(9_999), {}, ("backoff", None, None)),
    ("it failed six seconds ago", failed(9_994), {}, ("launch", None, "p:r9994")),
    ("it failed after a long life", failed(9_999, lived=500), {}, ("launch", None, "p:r9999")),
    ("it failed twice", failed(9_994, 9_980), {}, ("backoff", None, None)),
    ("it failed twice, and ten seconds", failed(9_989, 9_970), {}, ("launch", None, "p:r9989")),
    (
        "it failed five times",
        failed(9_000, 8_000, 7_000, 6_000, 5_000),
        {},
        ("crashloop", None, None),
    ),
    (
        "it failed five times before it was switched on again",
        failed(9_000, 8_000, 7_000, 6_000, 5_000),
        {"since": 9_500.0},
        ("launch", None, "p:r9000"),
    ),
    (
        "a healthy run lies between the failures",
        [*failed(9_000, 8_000), {**FAILED, "status": "done", "ended": 7_500}, *failed(7_000)],
        {},
        ("launch", None, "p:r9000"),
    ),
]


@pytest.mark.parametrize(
    ("sessions", "desired", "expected"), [row[1:] for row in ROWS], ids=[r[0] for r in ROWS]
)
def test_a_situation(sessions: list[dict], desired: dict, expected: tuple) -> None:
    found = decide(
        [Session(**each) for each in sessions], DesiredState(**{**DESIRED, **desired}), NOW
    )
    assert (found.action, found.run_id, found.run_key) == expected
    assert found.reason


def test_the_pause_grows_and_has_an_end() -> None:
    limits = SupervisionLimits(attempts=20, longest_pause=60)
    pauses: list[float] = []
    for count in range(1, 8):
        sessions = [Session(**each) for each in failed(*(NOW - i for i in range(count)))]
        at = NOW
        while decide(sessions, DesiredState(**DESIRED), at, limits).action == "backoff":
            at += 1
        pauses.append(at - NOW)
    assert pauses == [5, 10, 20, 40, 60, 60, 60]


def test_the_same_predecessor_gives_the_same_launch() -> None:
    sessions = [Session(**FAILED)]
    late = [decide(sessions, DesiredState(**DESIRED), NOW + wait) for wait in (100, 200)]
    assert late[0] == late[1]
    assert isinstance(late[0], Decision)
