"""Sources in phases: what each phase gives, when the topic begins, and where."""
# pyright: basic

import json
from dataclasses import asdict

import pytest

from kaflow_engine.connectors.kafka.admin import create_topic
from kaflow_engine.connectors.kafka.client import open_producer
from kaflow_engine.connectors.sources.kinds import source_kind
from kaflow_engine.errors import SourceUnfit
from kaflow_engine.flow.origins.files import FilesParams
from kaflow_engine.flow.origins.hybrid import HandoverParams, HybridParams
from kaflow_engine.model.columns import Column
from tests.engine.connectors.database_here import NOW, PostgresHere, place_of

pytestmark = [pytest.mark.kafka, pytest.mark.services]

COLUMNS = (Column("n", "BIGINT"),)


class Places:
    """A table with the numbers 0 to 9, which were records of two partitions, and the topic."""

    def __init__(self, broker, postgres, name, folder):
        self.broker, self.name, self.folder = broker, name, folder
        self.here = PostgresHere(postgres)
        self.here.run(f"CREATE TABLE {name} (n bigint PRIMARY KEY, part int, off bigint)")
        self.archive(range(10))
        create_topic(broker.settings, f"{name}.topic", 2)
        self.produce(range(16))
        (folder / "in").mkdir()
        (folder / "in" / "1.json").write_text('{"n": -2}\n{"n": -1}')

    def archive(self, numbers):
        for n in numbers:
            self.here.run(f"INSERT INTO {self.name} VALUES ({n}, {n % 2}, {n // 2})")

    def produce(self, numbers):
        producer = open_producer(self.broker.settings).api
        for n in numbers:
            producer.produce(f"{self.name}.topic", json.dumps({"n": n}), partition=n % 2)
        assert producer.flush(30) == 0

    def params(self, topic=True, **handover):
        files = FilesParams(path=str(self.folder / "in"), format="json", header=False, settle=0)
        said = {"columns": ("part", "off"), "offsets": None, "time": None}
        if handover:
            said = {**said, "columns": None, **handover}
        return HybridParams(
            phases=(files, self.here.params(self.name, columns=COLUMNS, page_size=4)),
            topic=f"{self.name}.topic" if topic else None,
            handover=HandoverParams(**said) if topic else None,
        )

    def open(self, params=None, state="state", **about):
        reached = {"0": {}, "1": self.here.connection}
        kafka = json.dumps(asdict(self.broker.settings))
        connection = {"phases": json.dumps(reached), "kafka": kafka}
        place = place_of(self.folder / state, connection, **about)
        return source_kind("hybrid").open(params or self.params(), place)


@pytest.fixture
def places(broker, postgres, unique, tmp_path):
    return Places(broker, postgres, unique, tmp_path)


def read_on(source, at):
    """Read what there is, as batches do; return the numbers and where each was."""
    found = []
    while (end := dict(source.latest())) != at:
        rows = source.read(at, end).to_pylist()
        assert {row["topic"] for row in rows} <= {"s"}
        found += [(r["partition"], r["offset"], json.loads(r["value"])["n"]) for r in rows]
        source.forget(end, NOW)
        at = end
    return found, at


BEGIN = {0: 0, 1: 5, 2: 5}
PHASES = [(0, at, n) for at, n in enumerate([-2, -1, *range(10)])]
TOPIC = [(n % 2 + 1, n // 2, n) for n in range(10, 16)]


def test_phases_and_then_the_topic_behind_them(places):
    source = places.open()
    assert list(source.partitions()) == [0, 1, 2]
    assert source.start("earliest") == BEGIN
    places.archive(range(10, 14))  # later: the topic has them
    assert source.latest() == {0: 6, 1: 5, 2: 5}  # one page, and nothing of the topic
    assert source.finite
    found, at = read_on(source, BEGIN)
    assert found[: len(PHASES)] == PHASES
    assert sorted(found[len(PHASES) :]) == sorted(TOPIC)
    assert at == {0: 12, 1: 8, 2: 8}
    assert not source.finite
    assert not source.bounded
    again = places.open()
    assert again.latest() == at
    assert again.start("latest") == at
    again.forget(at, NOW)
    places.produce([16])
    assert read_on(again, at) == ([(1, 8, 16)], {0: 12, 1: 9, 2: 8})


def test_a_crash_before_it_is_noted_that_the_phases_were_read(places):
    source = places.open()
    at = dict(BEGIN)
    while not (end := dict(source.latest()))[0] == 12:
        source.forget(end, NOW)
        at = end
    again = places.open()  # the last batch was committed, and no more
    assert again.latest() == {0: 12, 1: 5, 2: 5}
    again.forget({**at, 0: 12}, NOW)
    assert again.latest() == {0: 12, 1: 8, 2: 8}


def test_a_state_that_was_restored_as_it_was_before_the_handover(places):
    source = places.open()
    read_on(source, BEGIN)
    again = places.open()
    again.forget({0: 5, 1: 5, 2: 5}, NOW)
    assert again.latest() == {0: 12, 1: 5, 2: 5}
    assert again.finite


def test_another_machine_goes_on_with_the_same_handover(places):
    source, other = places.open(), places.open(state="elsewhere")
    at, ranges = dict(BEGIN), []
    while (end := dict(source.latest())) != at:
        cut = {0: min(end[0], at[0] + 5), 1: end[1], 2: end[2]}
        ranges.append((at, cut, json.loads(json.dumps(source.found(at, cut)))))
        source.forget(cut, NOW)
        at = cut
    places.archive([20])
    for low, high, found in ranges:
        other.know(found)
        assert other.read(low, high).to_pydict() == source.read(low, high).to_pydict()
        other.forget(high, NOW)
    assert other.latest() == source.latest() == {0: 12, 1: 8, 2: 8}


def test_a_dimension_is_read_to_the_end_of_its_phases(places):
    source = places.open(whole=True)
    assert source.start("latest") == {0: 12, 1: 5, 2: 5}


def test_without_a_topic_it_ends(places):
    source = places.open(places.params(topic=False))
    assert list(source.partitions()) == [0]
    assert read_on(source, {0: 0})[0] == PHASES
    assert source.bounded
    assert source.finite


@pytest.mark.parametrize(
    ("handover", "begin"),
    [
        ({"offsets": ((0, 3), (1, 4))}, {0: 0, 1: 3, 2: 4}),
        ({"time": 0}, {0: 0, 1: 0, 2: 0}),
        ({"time": 4_000_000_000_000}, {0: 0, 1: 8, 2: 8}),
        ({"start_at": "earliest"}, {0: 0, 1: 0, 2: 0}),
        ({"start_at": "latest"}, {0: 0, 1: 8, 2: 8}),
        ({"query": "SELECT 1, 5 UNION ALL SELECT 0, 2"}, {0: 0, 1: 2, 2: 5}),
    ],
)
def test_where_the_topic_begins(places, handover, begin):
    source = places.open(places.params(**handover))
    assert source.start("earliest") == begin
    places.produce(range(16, 20))
    assert places.open(places.params(**handover)).start("earliest") == begin  # found once


@pytest.mark.parametrize(
    ("handover", "said"),
    [
        ({"offsets": ((0, 3),)}, "says no offset of partition 1 of topic"),
        ({"offsets": ((0, 3), (1, 9))}, "takes over at offset 9 of partition 1, which ends at 8"),
        (
            {"offsets": ((0, 3), (1, 3), (2, 0))},
            "has no partition 2, at whose offset 0 it takes over",
        ),
        ({"query": "SELECT 0, 3"}, "says no offset of partition 1 of topic"),
        ({"query": "SELECT 0"}, "the query of the handover gives"),
        ({"query": "SELECT 'a', 'b'"}, "the query of the handover gives"),
    ],
)
def test_a_handover_that_is_wrong(places, handover, said):
    source = places.open(places.params(**handover))
    with pytest.raises(SourceUnfit, match=said):
        source.latest()


def test_rows_that_do_not_say_which_record_they_were(places):
    places.here.run(f"INSERT INTO {places.name} VALUES (50, 1, NULL)")
    with pytest.raises(SourceUnfit, match="rows of the last phase have no part or no off"):
        places.open().latest()


def test_a_phase_without_a_column(places):
    params = places.params()
    lacking = places.here.params(places.name, columns=(*COLUMNS, Column("m", "BIGINT")))
    other = HybridParams(
        phases=(params.phases[0], lacking), topic=params.topic, handover=params.handover
    )
    reached = {"0": {}, "1": places.here.connection}
    kafka = json.dumps(asdict(places.broker.settings))
    connection = {"phases": json.dumps(reached), "kafka": kafka}
    with pytest.raises(SourceUnfit, match="has no column 'm'"):
        source_kind("hybrid").check(other, connection)
    source_kind("hybrid").check(params, connection)
