import json
from collections import Counter
from itertools import islice

import pytest

from kaflow_engine.errors import UnknownName
from kaflow_engine.testing.sample.fake import BASE, TOPICS
from kaflow_engine.testing.sample.fake_stream import FakeStream, fake_records


def test_the_same_seed_gives_the_same_records():
    def made(seed: int) -> list[object]:
        stream = FakeStream(topics=tuple(TOPICS), seed=seed, entities=5, late_profiles=0.3)
        return list(islice(fake_records(stream), 500))

    assert made(7) == made(7)
    assert made(7) != made(8)


def test_these_bytes_never_change():
    stream = FakeStream(topics=("user_events", "user_profiles"), entities=1, max_records=2)
    profile, event = fake_records(stream)
    assert (profile.topic, profile.key, profile.timestamp) == ("user_profiles", b"u1", BASE)
    assert profile.value == (
        b'{"user_id":"u1","subscription_tier":"gold","country":"US","full_name":"Barbara Hopper"}'
    )
    assert event.value == b'{"user_id":"u1","event_type":"page_view","timestamp":1767225600000}'


@pytest.mark.parametrize("topic", TOPICS)
def test_each_topic_holds_objects_with_its_key(topic: str):
    stream = FakeStream(topics=(topic,), entities=3, max_records=20)
    for record in fake_records(stream):
        value = json.loads(record.value)
        assert value[TOPICS[topic].key].encode() == record.key
        assert len(value) > 1


def test_time_follows_the_rate_and_ends_with_the_duration():
    stream = FakeStream(topics=("events",), rate=50, duration=2000, start=1000)
    stamps = [record.timestamp for record in fake_records(stream)]
    assert stamps == list(range(1000, 3000, 20))


def test_profiles_come_before_events_unless_they_are_late():
    def topics(late: float) -> list[str]:
        stream = FakeStream(
            topics=("events", "profiles"), entities=20, late_profiles=late, duration=1000
        )
        return [record.topic for record in fake_records(stream)]

    assert topics(0.0)[:20] == ["profiles"] * 20
    assert topics(1.0)[0] == "events"
    assert Counter(topics(1.0))["profiles"] >= 20


def test_late_profiles_keep_the_order_of_time():
    stream = FakeStream(topics=("events", "profiles"), late_profiles=0.5, duration=1000)
    stamps = [record.timestamp for record in fake_records(stream)]
    assert stamps == sorted(stamps)


def test_a_share_of_the_events_is_broken():
    stream = FakeStream(topics=("events",), broken=0.1, max_records=1000)
    broken = sum(not record.value.endswith(b"}") for record in fake_records(stream))
    assert 60 < broken < 140


def test_an_unknown_topic_is_named_with_the_nearest():
    with pytest.raises(UnknownName) as caught:
        fake_records(FakeStream(topics=("user_event",)))
    assert str(caught.value) == (
        "unknown sample topic 'user_event'\n  hint: did you mean 'user_events'?"
    )
