# pyright: basic
"""When a state is taken from its checkpoints, and which batches are then run again."""

import json
from dataclasses import replace

import pytest

from kaflow_engine.errors import StateError
from kaflow_engine.runtime.batch.batch_backup import batches_left, to_kept
from kaflow_engine.runtime.takeover.restore import is_outdated
from kaflow_engine.state.checkpoints.checkpoints import Head, Listed, kept
from kaflow_engine.state.log.batch_log import BatchLog, BatchRecord, CommitRecord, StateRecord
from kaflow_engine.state.storage.store import LocalStore


def state(state_id="s", generation=2):
    return StateRecord(
        state_id=state_id,
        generation=generation,
        partitions=1,
        created_ms=0,
        start={},
        dimension_ends={},
        schemas={},
        fingerprint="f",
    )


def listed(batch):
    return Listed(batch=batch, created_ms=0, manifest=f"{batch}", sha256="", bytes=1)


def head(*batches, generation=2):
    checkpoints = tuple(map(listed, batches))
    return Head(epoch=1, state_id="s", generation=generation, files=(), checkpoints=checkpoints)


@pytest.mark.parametrize(
    ("local", "last", "there", "outdated"),
    [
        (None, 0, head(9, 7), True),
        (None, 0, head(), True),
        (state(), 6, head(9, 7), True),
        (state(), 7, head(9, 7), False),  # the topic has what follows
        (state(), 12, head(9, 7), False),
        (state(), 0, head(), False),
        (state("other"), 1, head(9, 7), False),
        (state(generation=1), 12, head(9, 7), True),
        (state(generation=3), 2, head(9, 7), False),
    ],
)
def test_which_state_counts(local, last, there, outdated):
    assert is_outdated(local, last, there) is outdated


@pytest.mark.parametrize(
    ("before", "newest", "after"),
    [((), 5, (5,)), ((5,), 9, (9, 5)), ((9, 5), 12, (12, 9)), ((9, 5), 9, (9, 5))],
)
def test_two_checkpoints_are_kept(before, newest, after):
    found = kept(tuple(map(listed, before)), listed(newest))
    assert tuple(each.batch for each in found) == after


def record(number):
    return BatchRecord(
        number=number,
        epoch=1,
        plan="f",
        batch_time=number,
        watermark={},
        ranges={"t": {0: (number, number + 1)}},
        read_to_end=(("t", 0),),
        bounded_end=False,
    )


@pytest.fixture
def log(tmp_path):
    """Batches 1 and 2 are done, 3 is open."""
    found = BatchLog(LocalStore(tmp_path))
    found.create_state(state())
    for number in (1, 2, 3):
        found.begin(record(number))
        if number < 3:
            found.commit(
                CommitRecord(number=number, epoch=1, changes={}, watermark={}, next_due={})
            )
    return found


@pytest.mark.parametrize(
    ("numbers", "again"), [((), [3]), ((1, 2), [3]), ((2, 3), [3]), ((3, 4, 5), [3, 4, 5])]
)
def test_which_batches_run_again(log, numbers, again):
    found = batches_left(log, {n: to_kept(record(n), None) for n in numbers}, 7, "p")
    assert [each.number for each in found] == again
    assert [each.ranges for each in found] == [record(n).ranges for n in again]


STORED = [({}, None), ({0: 7}, 7), ({0: 7, 2: 9}, {"0": 7, "2": 9}), ({2: 9}, {"2": 9})]


@pytest.mark.parametrize(("watermarks", "stored"), STORED)
def test_watermarks_are_kept_as_before_where_chain_0_is_the_only_one(log, watermarks, stored):
    kept_batch = json.loads(json.dumps(to_kept(replace(record(4), watermark=watermarks), None)))
    assert kept_batch["watermark"] == stored
    _, found = batches_left(log, {3: to_kept(record(3), None), 4: kept_batch}, 7, "p")
    assert found.watermark == watermarks


def test_a_batch_that_only_a_checkpoint_covers(log):
    kept_batches = {n: to_kept(record(n), None) for n in (5, 6)}
    with pytest.raises(StateError, match="ends at batch 2, and batch 3 is no longer kept"):
        batches_left(log, kept_batches, 7, "p")
