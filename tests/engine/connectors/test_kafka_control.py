"""Epochs, fencing, markers and batch records in the pipeline's own topic."""

from collections.abc import Callable
from dataclasses import replace

import pyarrow as pa
import pytest

from kaflow_engine.connectors.holding import Holding
from kaflow_engine.connectors.kafka.admin import create_topic
from kaflow_engine.connectors.kafka.client import KafkaSettings
from kaflow_engine.connectors.kafka.delivery.deliver import SinkSettings, deliver
from kaflow_engine.connectors.kafka.run_log.control import ControlTopic
from kaflow_engine.connectors.kafka.run_log.transactions import control_topic, open_transactional
from kaflow_engine.connectors.kafka.topics import topic_settings
from kaflow_engine.connectors.run_log import Delivered, RunStart
from kaflow_engine.errors import StateError, TakenOver

pytestmark = pytest.mark.kafka

Rows = Callable[..., pa.Table]


def sink_of(kafka: KafkaSettings, pipeline: str, run: RunStart, state: str = "s1") -> SinkSettings:
    return SinkSettings(
        kafka=kafka,
        pipeline_id=pipeline,
        state_id=state,
        generation=1,
        sink="out",
        epoch=run.epoch,
        epoch_offset=run.epoch_offset,
        delivered=run.delivered_to("out"),
    )


def test_the_first_run_makes_the_topic(kafka: KafkaSettings, unique: str) -> None:
    control = ControlTopic(kafka, unique)
    assert control.states() == set()
    run = control.start_run("s1", 1)
    assert (run.epoch, run.delivered, run.batches) == (1, {}, {})
    assert topic_settings(kafka, control.topic)["cleanup.policy"] == "compact"


def test_the_broker_tells_its_time(kafka: KafkaSettings, unique: str) -> None:
    create_topic(kafka, control_topic(unique), 1, {"cleanup.policy": "compact"})
    control = ControlTopic(kafka, unique)
    assert control.broker_time() is None  # a topic of an earlier version has the time of writers
    control.ensure()
    first, second = control.broker_time(), control.broker_time()
    assert first is not None
    assert second is not None
    assert first <= second
    assert control.states() == set()
    assert control.start_run("s1", 1).epoch == 1


def test_an_unfit_topic(kafka: KafkaSettings, unique: str) -> None:
    create_topic(kafka, control_topic(unique), 2)
    with pytest.raises(StateError, match="has 2 partitions instead of one"):
        ControlTopic(kafka, unique).start_run("s1", 1)
    create_topic(kafka, control_topic(f"{unique}x"), 1)
    with pytest.raises(StateError, match=r"has cleanup\.policy 'delete'"):
        ControlTopic(kafka, f"{unique}x").start_run("s1", 1)


def test_markers_count_rows(kafka: KafkaSettings, unique: str, output: Rows) -> None:
    create_topic(kafka, unique, 1)
    run = ControlTopic(kafka, unique).start_run("s1", 1)
    sink = sink_of(kafka, unique, run)
    rows = pa.concat_tables([output([(unique, b"k", b"v")], slot=slot) for slot in (0, 2)])
    deliver(sink, 4, pa.concat_tables([rows, rows.slice(1)]))
    found = ControlTopic(kafka, unique).start_run("s1", 1)
    assert found.delivered == {("out", 0): 4, ("out", 2): 4}
    assert found.delivered_to("out") == {0: Delivered(4, 1), 2: Delivered(4, 2)}
    again = sink_of(kafka, unique, found)
    with pytest.raises(StateError, match="has delivered 2 rows of partition 2, and has 1 now"):
        deliver(again, 4, rows)
    assert deliver(replace(again, same_rows=False), 4, rows).skipped == (0, 2)


def test_what_was_delivered(kafka: KafkaSettings, unique: str, output: Rows) -> None:
    create_topic(kafka, unique, 1)
    control = ControlTopic(kafka, unique)
    run = control.start_run("s1", 1)
    deliver(sink_of(kafka, unique, run), 4, output([(unique, b"k", b"v")]), mark="four")
    control.claim(5, "five")
    other = ControlTopic(kafka, unique)
    held = other.start_run("s1", 2)
    assert held.delivered == {}
    assert held.holdings == {
        Holding(state="s1", generation=1, batch=4, mark="four"),
        Holding(state="s1", generation=1, batch=5, mark="five"),
    }
    assert other.forget([("s1", 1)]) == 2
    assert other.states() == set()
    assert other.start_run("s2", 1).holdings == frozenset()


@pytest.mark.parametrize("asleep", [False, True], ids=["between batches", "in a transaction"])
def test_a_start_that_is_refused_leaves_the_live_run_alone(
    kafka: KafkaSettings, unique: str, output: Rows, asleep: bool
) -> None:
    create_topic(kafka, unique, 1)
    live, stranger = ControlTopic(kafka, unique), ControlTopic(kafka, unique)
    sink = sink_of(kafka, unique, live.start_run("s1", 1))
    deliver(sink, 1, output([(unique, b"k", b"v")]))
    asked: list[int] = []

    def refuse(start: RunStart) -> None:
        asked.extend(each.batch for each in start.holdings)
        raise StateError("another state has delivered")

    def refused(point: str = "before_commit") -> None:
        if point == "before_commit":
            with pytest.raises(StateError, match="another state has delivered"):
                stranger.start_run("s2", 1, refuse)

    if not asleep:
        refused()
    deliver(sink, 2, output([(unique, b"k", b"v")]), refused if asleep else lambda point: None)
    live.put_batch(3, {})
    assert asked == [1]
    assert ControlTopic(kafka, unique).start_run("s1", 1).delivered == {("out", 0): 2}


def test_what_a_live_run_delivers_while_another_starts_is_looked_at_again(
    kafka: KafkaSettings, unique: str, output: Rows
) -> None:
    create_topic(kafka, unique, 1)
    sink = sink_of(kafka, unique, ControlTopic(kafka, unique).start_run("s1", 1))
    seen: list[set[int]] = []

    def look(start: RunStart) -> None:
        seen.append({each.batch for each in start.holdings})
        if len(seen) == 1:
            deliver(sink, 1, output([(unique, b"k", b"v")]))

    ControlTopic(kafka, unique).start_run("s1", 1, look)
    assert seen == [set(), {1}]


def test_another_pipeline_s_transaction_holds_nothing_back(
    kafka: KafkaSettings, unique: str, output: Rows
) -> None:
    other = f"{unique}-other"
    create_topic(kafka, unique, 1)
    ControlTopic(kafka, other).start_run("s1", 1)
    writer = open_transactional(kafka, f"kaflow.{other}.out.x", 60_000, 10_000).api
    writer.begin_transaction()
    for topic in (unique, control_topic(other)):
        writer.produce(topic, b"open", b"k")
    writer.flush(10)
    run = ControlTopic(kafka, unique).start_run("s1", 1)
    deliver(sink_of(kafka, unique, run), 1, output([(unique, b"k", b"v")]))
    assert ControlTopic(kafka, unique).start_run("s1", 1).delivered == {("out", 0): 1}
    writer.commit_transaction(10)  # it was open all along: the broker had not yet given it up


def test_a_stranger_s_open_transaction_is_said(kafka: KafkaSettings, unique: str) -> None:
    control = ControlTopic(kafka, unique, timeout=2000)
    control.start_run("s1", 1)
    stranger = open_transactional(kafka, unique, 60_000, 10_000).api
    stranger.begin_transaction()
    stranger.produce(control.topic, b'{"epoch":9}', b'{"id":"x","kind":"slot"}', 0)
    stranger.flush(10)
    with pytest.raises(StateError, match="a transaction stays open"):
        control.start_run("s1", 1)
    stranger.abort_transaction(10)


@pytest.mark.parametrize("exactly_once", [True, False])
def test_a_leftover_worker_ends_itself(
    kafka: KafkaSettings, unique: str, output: Rows, exactly_once: bool
) -> None:
    run = ControlTopic(kafka, unique).start_run("s1", 1)
    stale = replace(sink_of(kafka, unique, run), exactly_once=exactly_once)
    newer = ControlTopic(kafka, unique)
    newer.start_run("s1", 1)
    # it opens its first producer only now, so no one could fence it
    with pytest.raises(TakenOver, match="may not write: run 2 has taken over"):
        deliver(stale, 1, output([(unique, b"k", b"v")]))
    assert newer.start_run("s1", 1).delivered == {}
