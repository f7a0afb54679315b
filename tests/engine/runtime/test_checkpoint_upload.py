"""One run writes the head of the checkpoints; a write whose answer is lost is its own."""
# pyright: basic

from dataclasses import replace

import pytest

from kaflow_engine.errors import SinkError
from kaflow_engine.runtime.batch.checkpoint_upload import Checkpointer
from kaflow_engine.state.checkpoints.checkpoints import Checkpoints, Listed
from kaflow_engine.state.log.batch_log import StateRecord
from kaflow_engine.state.storage.bucket import BucketAway, BucketSettings, ObjectChanged
from kaflow_engine.state.storage.store import LocalStore

STATE = StateRecord(
    state_id="s",
    generation=1,
    partitions=1,
    created_ms=0,
    start={},
    dimension_ends={},
    schemas={},
    fingerprint="f",
)
LISTED = Listed(batch=1, created_ms=0, manifest="m", sha256="x", bytes=1)


class BucketHere:
    """Objects in memory; `loses` says what happens to the next write."""

    def __init__(self):
        self.objects, self.loses = {}, None

    def get(self, name):
        return self.objects.get(name)

    def put(self, name, data, replacing):
        loses, self.loses = self.loses, None
        if loses == "write":
            raise BucketAway("the store does not answer")
        if (self.objects.get(name) or (None, None))[1] != replacing:
            raise ObjectChanged("another writer has written it")
        self.objects[name] = data, f"tag{len(data)}-{hash(data)}"
        if loses == "answer":
            raise BucketAway("the store does not answer")
        return self.objects[name][1]


@pytest.fixture
def carrier(tmp_path):
    bucket = BucketHere()

    def carrier_of(epoch):
        checkpoints = Checkpoints(BucketSettings(bucket="b"), "p")
        checkpoints.bucket = bucket
        store = LocalStore(tmp_path)
        store.put("state.json", b"{}")
        found = Checkpointer(checkpoints, store, STATE, epoch)
        return found, bucket

    return carrier_of


@pytest.mark.parametrize("loses", ["answer", "write"])
@pytest.mark.parametrize("at_start", [True, False])
def test_a_head_that_may_have_been_written(carrier, loses, at_start):
    mine, bucket = carrier(2)
    bucket.loses = loses if at_start else None
    mine.take_over()
    if not at_start:
        bucket.loses = loses
        with pytest.raises(BucketAway):
            mine._publish(replace(mine._head, checkpoints=(LISTED,)))
    head = mine._head or mine._take_over()
    mine._publish(replace(head, checkpoints=(replace(LISTED, batch=2),)))
    assert [listed.batch for listed in mine._checkpoints.head()[0].checkpoints] == [2]


@pytest.mark.parametrize("loses", ["answer", "write"])
def test_another_run_takes_over_what_is_in_doubt(carrier, loses):
    mine, bucket = carrier(2)
    mine.take_over()
    bucket.loses = loses
    with pytest.raises(BucketAway):
        mine._publish(replace(mine._head, checkpoints=(LISTED,)))
    other, _ = carrier(3)
    other.take_over()
    with pytest.raises(SinkError, match="has taken over its checkpoints"):
        mine._publish(mine._head)
    assert other._checkpoints.head()[0].epoch == 3
