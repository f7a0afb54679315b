from itertools import islice, takewhile

from kaflow_engine.testing.sample.endless import WINDOW, Endless, endless_records

TOPICS = ("user_events", "user_profiles")


def test_the_same_values_give_the_same_records():
    stream = Endless(topics=TOPICS, start=0)
    first, second = (list(islice(endless_records(stream), 500)) for _ in range(2))
    assert first == second


def test_it_goes_on_with_more_users_and_never_back_in_time():
    stream = Endless(topics=TOPICS, start=1000, rate=10, entities=20, growth=10)
    records = list(takewhile(lambda r: r.timestamp < 1000 + 3 * WINDOW, endless_records(stream)))
    stamps = [record.timestamp for record in records]
    assert stamps == sorted(stamps)
    users = {r.key for r in records if r.topic == "user_profiles"}
    assert len(users) == 40
    assert any(r.topic == "user_profiles" and r.timestamp % WINDOW != 1000 for r in records)
