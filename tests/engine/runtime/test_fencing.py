"""What a start refuses, whatever the sink: one guard, as rows of data."""
# pyright: basic

import re
from dataclasses import replace

import pytest

from kaflow_engine.connectors.holding import Holding
from kaflow_engine.errors import StateError
from kaflow_engine.runtime.takeover.fencing import Logged, check_holdings
from kaflow_engine.state.log.batch_log import BatchRecord
from kaflow_engine.state.log.mark import batch_mark

LOGGED = Logged(
    pipeline="p",
    state="s",
    generation=2,
    last=5,
    marks={3: "three", 5: "five"},
    replaced=frozenset({("old", 1)}),
)
TABLE = "and another table: all rows are written again"
TOPIC = "give the pipeline a new `id:`, which starts from the beginning"

FINE = {
    "nothing": [],
    "a batch that is done": [("s", 2, 3, "three")],
    "the open batch": [("s", 2, 5, "five", "t")],
    "a batch that is not in the log any more": [("s", 2, 1, "one")],
    "a sink that has no note of the batch": [("s", 2, 5, "", "t")],
    "an earlier generation": [("s", 1, 3, "of that generation")],
    "what was replaced on purpose": [("old", 1, 99, "x"), ("old", 1, 99, "", "t")],
    "a table that belongs to the state": [("s", 2, 0, "", "t")],
}
REFUSED = {
    "another state": (
        [("x", 1, 4)],
        "pipeline 'p' has delivered rows (up to batch 4) from state 'x' generation 1, but the "
        "state at hand is 's' generation 2",
        TOPIC,
    ),
    "other states": (
        [("x", 1, 4), ("w", 3, 9, "", "t"), ("s", 2, 5)],
        "(up to batch 9) to table 't' from state 'w' generation 3, 'x' generation 1, but",
        TABLE,
    ),
    "another generation of a replaced state": (
        [("old", 2, 1)],
        "state 'old' generation 2",
        "",
    ),
    "a later generation": ([("s", 3, 1)], "from state 's' generation 3, but", "bring that state"),
    "a table of another state without rows": (
        [("x", 1, 0, "", "t")],
        "up to batch 0) to table",
        "",
    ),
    "a log that was taken back": (
        [("s", 2, 6)],
        "batch 6 of pipeline 'p' was delivered, but its log ends at batch 5",
        f"restore the newer state directory, or {TOPIC}",
    ),
    "a log that was taken back before it was rescaled": ([("s", 1, 6)], "log ends at batch 5", ""),
    "a log that is behind a table": (
        [("s", 2, 7), ("s", 2, 7, "", "t")],
        "batch 7 of pipeline 'p' was delivered to table 't', but its log ends at batch 5",
        TABLE,
    ),
    "a log that is behind a folder": (
        [("s", 2, 7, "", "f", "folder")],
        "batch 7 of pipeline 'p' was delivered to folder 'f', but its log ends at batch 5",
        "give the pipeline a new `id:` and another folder: all rows are written again",
    ),
    "another batch of that number": (
        [("s", 2, 5, "other")],
        "batch 5 of pipeline 'p' was delivered with other records than its log has for it",
        "restore the state directory that was run last",
    ),
    "another batch, before the last one": ([("s", 2, 3, "other")], "batch 3 of pipeline 'p'", ""),
}


def holding(state, generation, batch, mark="", table=None, kept_in="table"):
    return Holding(
        state=state, generation=generation, batch=batch, mark=mark, table=table, kept_in=kept_in
    )


@pytest.mark.parametrize("name", FINE)
def test_known(name):
    check_holdings(LOGGED, [holding(*each) for each in FINE[name]])


@pytest.mark.parametrize("name", REFUSED)
def test_refused(name):
    held, said, hint = REFUSED[name]
    with pytest.raises(StateError, match=re.escape(said)) as caught:
        check_holdings(LOGGED, [holding(*each) for each in held])
    assert hint in (caught.value.hint or "")


BATCH = BatchRecord(
    number=7,
    epoch=1,
    plan="p",
    batch_time=5,
    watermark={},
    ranges={"b": {1: (0, 3), 0: (2, 4)}, "a": {0: (0, 0)}},
    read_to_end=(("a", 0),),
    bounded_end=False,
)


@pytest.mark.parametrize(
    ("change", "same"),
    [
        ({"epoch": 9, "generation": 3}, True),
        ({"ranges": {"a": {0: (0, 0)}, "b": {0: (2, 4), 1: (0, 3)}}}, True),
        ({"ranges": {"a": {0: (0, 0)}, "b": {0: (2, 4), 1: (0, 2)}}}, False),
        ({"number": 8}, False),
        ({"batch_time": 6}, False),
        ({"watermark": {0: 1}}, False),
        ({"plan": "q"}, False),
        ({"read_to_end": ()}, False),
        ({"bounded_end": True}, False),
    ],
)
def test_a_mark_is_of_all_that_must_be_equal(change, same):
    assert (batch_mark(replace(BATCH, **change)) == batch_mark(BATCH)) is same


@pytest.mark.parametrize(
    ("watermarks", "mark"),
    [
        ({}, "2307a2b755602c1a"),
        ({0: 1}, "4e3a54c39d48c5f0"),
        ({0: 1, 2: 1}, "2bef87ba22fea968"),
        ({2: 1}, "d7f42aa0f2ac4e83"),
    ],
)
def test_sinks_hold_marks_of_earlier_versions(watermarks, mark):
    assert batch_mark(replace(BATCH, watermark=watermarks)) == mark
