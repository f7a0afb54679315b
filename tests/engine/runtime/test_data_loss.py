"""Which records of a batch are gone, and how they are counted, whatever was interrupted."""
# pyright: basic

from collections import Counter
from types import SimpleNamespace

import pytest

from kaflow_engine.connectors.kafka.client import KafkaSettings
from kaflow_engine.connectors.kafka.clusters import input_topics
from kaflow_engine.operators.watermark import WatermarkState
from kaflow_engine.runtime.batch.data_loss import _within as within
from kaflow_engine.runtime.batch.data_loss import left_of, moved_past, settle_losses
from kaflow_engine.runtime.batch.position import Position
from kaflow_engine.runtime.batch.progress import Watch
from kaflow_engine.runtime.failures.failures import DataLost
from kaflow_engine.runtime.source import inputs
from kaflow_engine.runtime.source.history import Piece, TopicHistory
from kaflow_engine.runtime.source.offsets import losses_of
from kaflow_engine.runtime.source.record_source import RecordSource

ANOTHER = {"t": ("old", "new")}


def move(at, first, end, another=None):
    counters = Counter()
    found, said = moved_past(at, losses_of(at, first, end, another), counters)
    return found, dict(counters), len(said)


@pytest.mark.parametrize(
    ("at", "first", "end", "found", "counters"),
    [
        ({"t": {0: 5}}, {"t": {0: 0}}, {"t": {0: 9}}, {"t": {0: 5}}, {}),
        ({"t": {0: 5}}, {"t": {0: 8}}, {"t": {0: 9}}, {"t": {0: 8}}, {"lost": 3}),
        ({"t": {0: 5}}, {"t": {0: 0}}, {"t": {0: 2}}, {"t": {0: 0}}, {"restarted_partitions": 1}),
        ({"t": {0: 5, 1: 5}}, {"t": {0: 0}}, {"t": {0: 9}}, {"t": {0: 5}},
         {"restarted_partitions": 1}),
    ],
)  # fmt: skip
def test_where_to_go_on(at, first, end, found, counters):
    assert move(at, first, end)[:2] == (found, counters)


@pytest.mark.parametrize(
    ("at", "first", "end", "found", "counters"),
    [
        # wherever the offset lies in the other topic
        ({"t": {0: 5}}, {"t": {0: 0}}, {"t": {0: 9}}, {"t": {0: 0}}, {"restarted_partitions": 1}),
        ({"t": {0: 5}}, {"t": {0: 7}}, {"t": {0: 9}}, {"t": {0: 7}}, {"restarted_partitions": 1}),
        ({"t": {0: 0}}, {"t": {0: 0}}, {"t": {0: 0}}, {"t": {0: 0}}, {"restarted_partitions": 1}),
        ({"t": {0: 5, 1: 5}}, {"t": {0: 0}}, {"t": {0: 9}}, {"t": {0: 0}},
         {"restarted_partitions": 2}),
        ({"u": {0: 5}}, {"u": {0: 0}}, {"u": {0: 9}}, {"u": {0: 5}}, {}),
    ],
)  # fmt: skip
def test_where_to_go_on_in_a_topic_that_was_recreated(at, first, end, found, counters):
    assert move(at, first, end, ANOTHER)[:2] == (found, counters)


def left(at, ranges, first, end, another=None, passed=frozenset()):
    counters = Counter()
    found, _ = left_of(at, ranges, within(ranges, first, end, another), counters, passed)
    return found, dict(counters)


@pytest.mark.parametrize(
    ("at", "ranges", "passed", "found", "counters"),
    [
        # recreated since the batch was logged: nothing of it is left
        ({"t": {0: 2}}, {"t": {0: (2, 6)}}, "", {"t": {0: (6, 6)}}, {"lost": 4}),
        ({"t": {0: 2}}, {"t": {0: (2, 2)}}, "", None, {}),
        # recreated before it was logged, and once more since
        ({"t": {0: 2}}, {"t": {0: (7, 9)}}, "t", {"t": {0: (9, 9)}},
         {"lost": 2, "restarted_partitions": 1}),
        # a partition that only the other topic had
        ({"t": {0: 2}}, {"t": {0: (0, 0), 1: (0, 0)}}, "t", None, {"restarted_partitions": 1}),
    ],
)  # fmt: skip
def test_what_is_left_of_a_batch_of_a_topic_that_was_recreated(at, ranges, passed, found, counters):
    first, end = {"t": {0: 0, 1: 0}}, {"t": {0: 99, 1: 99}}
    assert left(at, ranges, first, end, ANOTHER, frozenset(passed)) == (found, counters)


def plan(**more):
    topic = SimpleNamespace(name="t", on_data_loss="continue")
    return SimpleNamespace(**{"sources": [topic], "backfill": None, **more})


NOWHERE = input_topics.InputTopics.all_in(KafkaSettings(()))
FORCED = SimpleNamespace(force=True)


def settle(monkeypatch, at, ids, histories=None, wanted=None, partitions=2):
    """Settle with a topic of the id `new`, whose partitions hold the offsets 3 to 90."""
    first, end = ({"t": dict.fromkeys(range(partitions), at)} for at in (3, 90))
    monkeypatch.setattr(input_topics, "topic_ids", lambda *asked: {"t": "new"})
    monkeypatch.setattr(
        input_topics, "offsets", lambda k, c, which, **m: first if which == "earliest" else end
    )
    mark = WatermarkState(latest=(("t", 0, 8), ("t", 9, 8)), seen=(("t", 0, 8), ("t", 9, 8)))
    before = Position(batch=1, batch_time=0, offsets={"t": at}, topic_ids=ids, watermark=mark)
    watch = Watch("p", lambda progress: None)
    after, _ = settle_losses(
        inputs.Inputs(NOWHERE), wanted or plan(), before, {"t": partitions}, watch, histories or {}
    )
    return after


def test_a_topic_that_was_recreated_begins_at_its_first_offsets(monkeypatch):
    after = settle(monkeypatch, {0: 50, 9: 50}, {"t": "old"})
    assert after.offsets == {"t": {0: 3, 1: 3}}
    assert after.topic_ids == {"t": "new"}
    assert after.counters == {"restarted_partitions": 2}
    # a partition that is gone for ever must not hold the watermark for ever
    assert [row[:2] for row in (*after.watermark.latest, *after.watermark.seen)] == [("t", 0)] * 2


def test_partitions_that_were_added_begin_where_records_do(monkeypatch):
    after = settle(monkeypatch, {0: 50}, {"t": "new"})
    assert after.offsets == {"t": {0: 50, 1: 3}}
    assert after.counters == {"lost": 3}


def test_files_are_read_to_their_end_before_a_topic_that_was_recreated(monkeypatch):
    piece = Piece(file="f", size=1, partition=0, first=0, end=60, since=0, until=1)
    history = TopicHistory(topic="t", source=None, base="", schema="", pieces=(piece,))
    source = RecordSource(
        spark=None, topics=NOWHERE, pipeline="p", histories={"t": history}, topic_ids={"t": "old"}
    )
    ahead = settle(monkeypatch, {0: 50}, {"t": "old"}, source.histories)
    assert (ahead.offsets["t"][0], ahead.topic_ids) == (50, {"t": "old"})
    assert source.of(ahead.topic_ids).histories == {"t": history}
    behind = settle(monkeypatch, {0: 60}, {"t": "old"}, source.histories)
    assert (behind.offsets["t"], behind.topic_ids) == ({0: 3, 1: 3}, {"t": "new"})
    assert source.of(behind.topic_ids).histories == {}  # it would be read in their place


def test_a_backfill_never_goes_on_in_another_topic(monkeypatch):
    with pytest.raises(DataLost, match="recreated: it had the id old, and the one with") as caught:
        settle(monkeypatch, {0: 50}, {"t": "old"}, wanted=plan(backfill=FORCED))
    assert "kaflow state drop" in caught.value.hint
    # nor does it read partitions that its bounds do not have
    after = settle(monkeypatch, {0: 50}, {"t": "new"}, wanted=plan(backfill=FORCED))
    assert after.offsets == {"t": {0: 50}}


@pytest.mark.parametrize(
    ("at", "ranges", "first", "end", "found", "counters"),
    [
        # all of it is there
        ({"t": {0: 2}}, {"t": {0: (2, 6)}}, {"t": {0: 0}}, {"t": {0: 9}}, None, {}),
        # an empty range needs nothing
        ({"t": {0: 2}}, {"t": {0: (2, 2)}}, {"t": {0: 4}}, {"t": {0: 9}}, None, {}),
        # its first half is gone
        ({"t": {0: 2}}, {"t": {0: (2, 6)}}, {"t": {0: 4}}, {"t": {0: 9}},
         {"t": {0: (4, 6)}}, {"lost": 2}),
        # all of it is gone
        ({"t": {0: 2}}, {"t": {0: (2, 6)}}, {"t": {0: 8}}, {"t": {0: 9}},
         {"t": {0: (6, 6)}}, {"lost": 4}),
        # it was logged behind a loss that no commit has counted
        ({"t": {0: 2}}, {"t": {0: (5, 6)}}, {"t": {0: 5}}, {"t": {0: 9}}, None, {"lost": 3}),
        # the topic was recreated
        ({"t": {0: 2}}, {"t": {0: (2, 6)}}, {"t": {0: 0}}, {"t": {0: 3}},
         {"t": {0: (6, 6)}}, {"lost": 4}),
    ],
)  # fmt: skip
def test_what_is_left_of_a_batch_that_is_run_again(at, ranges, first, end, found, counters):
    assert left(at, ranges, first, end) == (found, counters)
