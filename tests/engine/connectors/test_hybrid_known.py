"""Sources in phases: what another machine has found beside what is known, and how often the topic
is asked about."""
# pyright: basic

import json
import logging
from collections import Counter
from types import SimpleNamespace

import pytest

from kaflow_engine.connectors.hybrid import reads
from kaflow_engine.connectors.hybrid.handover import require_handover
from kaflow_engine.connectors.hybrid.reads import TopicRead
from kaflow_engine.connectors.hybrid.source import HybridSource
from kaflow_engine.connectors.kafka import admin
from kaflow_engine.connectors.kafka import source as topics
from kaflow_engine.connectors.kafka.client import KafkaSettings
from kaflow_engine.connectors.kafka.source import TopicSource
from kaflow_engine.connectors.postgres.source.reader import PostgresReader
from kaflow_engine.errors import SourceUnfit
from kaflow_engine.flow.origins.files import FilesParams
from kaflow_engine.flow.origins.hybrid import HandoverParams, HybridParams
from kaflow_engine.state.storage.store import Damaged
from tests.engine.connectors.database_here import NOW, PostgresHere, place_of

NOWHERE = KafkaSettings(("127.0.0.1:1",))
HANDOVER = "sources/s/handover.json"
PHASES = "sources/s/phases.json"


@pytest.fixture
def folder(tmp_path):
    (tmp_path / "in").mkdir()
    return tmp_path


def opened(folder, phases=1, path=None, topic="t"):
    path = str(folder / "in") if path is None else path
    files = FilesParams(path=path, format="json", header=False, settle=0)
    params = HybridParams(
        phases=(files,) * phases,
        topic=topic,
        handover=topic and HandoverParams(columns=None, offsets=((0, 3),), time=None),
    )
    place = place_of(folder / "state", {})
    return HybridSource(params, place, [{}] * phases, topic and NOWHERE), place.store


def found(handover, ends):
    return {"handover": handover, "ends": ends, "phases": {}}


def test_another_handover_than_the_one_that_is_kept_is_refused(folder):
    source, store = opened(folder)
    source.know(found({"0": 3}, []))
    assert json.loads(store.get(HANDOVER)) == {"0": 3}
    for again in (source, opened(folder)[0]):
        again.know(found({"0": 3}, []))
        with pytest.raises(Damaged, match=r"takes over elsewhere") as caught:
            again.know(found({"0": 4}, []))
        assert caught.value.hint == "restore the whole directory from one backup"
    assert json.loads(store.get(HANDOVER)) == {"0": 3}


def test_other_ends_of_phases_than_those_that_are_kept_are_refused(folder):
    source, store = opened(folder, phases=3)
    source.know(found({"0": 3}, [2]))
    source.know(found({"0": 3}, [2, 5]))
    source.know(found({"0": 3}, [2]))
    assert json.loads(store.get(PHASES))["ends"] == [2, 5]
    for ends in ([3], [2, 4], [1, 5, 9]):
        with pytest.raises(Damaged, match="phases end elsewhere"):
            source.know(found({"0": 3}, ends))
    assert json.loads(store.get(PHASES))["ends"] == [2, 5]


class FakeBroker:
    """A topic of two partitions, and how often it was asked about it."""

    def __init__(self, monkeypatch):
        self.asked = Counter()
        self.partitions = 2
        monkeypatch.setattr(topics, "open_admin", self._open, raising=False)
        monkeypatch.setattr(admin, "open_admin", self._open)

    def _open(self, settings):
        self.asked["opened"] += 1
        api = SimpleNamespace(list_topics=self._list_topics, list_offsets=self._list_offsets)
        return SimpleNamespace(api=api, settings=settings)

    def _list_topics(self, timeout):
        self.asked["topics"] += 1
        topic = SimpleNamespace(error=None, partitions=dict.fromkeys(range(self.partitions)))
        return SimpleNamespace(topics={"t": topic})

    def _list_offsets(self, wanted, **how):
        self.asked["offsets"] += 1
        answer = SimpleNamespace(result=lambda timeout: SimpleNamespace(offset=7))
        return dict.fromkeys(wanted, answer)


def test_the_ends_of_a_topic_are_asked_for_over_one_client(monkeypatch):
    broker = FakeBroker(monkeypatch)
    topic = TopicSource(NOWHERE, "t")
    for _ in range(5):
        assert topic.latest() == topic.start("earliest") == {0: 7, 1: 7}
    assert broker.asked == {"opened": 1, "topics": 1, "offsets": 10}
    broker.partitions = 3
    assert list(topic.partitions()) == [0, 1, 2]
    assert topic.latest() == {0: 7, 1: 7, 2: 7}
    assert broker.asked == {"opened": 1, "topics": 2, "offsets": 11}


def test_the_first_offsets_are_asked_for_once_for_a_handover(monkeypatch, folder):
    broker = FakeBroker(monkeypatch)
    broker.partitions = 1
    monkeypatch.setattr(topics.TopicSource, "latest", lambda topic: {0: 7})
    source, _ = opened(folder)
    with pytest.raises(Exception, match="takes over at offset 3"):
        source.latest()
    assert broker.asked["offsets"] == 1


def test_one_consumer_reads_all_pieces_of_a_range(monkeypatch):
    asked = Counter()

    def opened_consumer(settings):
        asked["opened"] += 1
        return SimpleNamespace(api=SimpleNamespace(close=lambda: asked.update(["closed"])))

    def collect(client, topic, starts, ends, timeout, close=True, exact=False):
        asked["pieces"] += 1
        if close:
            client.api.close()
        return []

    monkeypatch.setattr(reads, "_PIECE", 10)
    monkeypatch.setattr(reads, "open_consumer", opened_consumer)
    monkeypatch.setattr(reads, "collect", collect)
    read = TopicRead(source="s", kafka=NOWHERE, topic="t", partition=0, shown=1, start=0, end=35)
    list(read())
    assert asked == {"opened": 1, "pieces": 4, "closed": 1}


def test_a_phase_without_files_says_so(folder, caplog):
    caplog.set_level(logging.WARNING)
    pattern = f"{folder}/in/*.json"
    source, _ = opened(folder, path=pattern, topic=None)
    assert source.latest() == {0: 0}
    assert source.bounded
    assert [record.message for record in caplog.records] == [
        f"no file in '{folder}/in' is named by '{pattern}': the phase ends without rows"
    ]
    assert source.latest() == {0: 0}
    assert len(caplog.records) == 1


def test_a_phase_of_files_ends_with_what_is_there(folder, caplog):
    caplog.set_level(logging.WARNING)
    (folder / "in" / "1.json").write_text('{"n": 1}\n{"n": 2}')
    source, _ = opened(folder, topic=None)
    assert source.latest() == {0: 2}
    assert source.bounded
    source.forget({0: 2}, NOW)
    assert not caplog.records


@pytest.mark.parametrize(
    ("rows", "error"),
    [
        ([(0, 3), (1, None)], r"gives the row \(1, None\)"),
        ([(0, 3), (1,)], r"gives the row \(1,\)"),
        ([(0, 3), (0, 5)], "gives two offsets of partition 0: 3 and 5"),
        ([(0, 3), ("1", 4.0), (0, 3)], None),
    ],
)
def test_rows_of_the_query_of_a_handover(monkeypatch, rows, error):
    monkeypatch.setattr(PostgresReader, "__init__", lambda *_: None)
    monkeypatch.setattr(PostgresReader, "rows_of", lambda *_: rows)
    asked = HandoverParams(columns=None, offsets=None, time=None, query="SELECT")
    table = PostgresHere.params(SimpleNamespace(), "t")
    params = HybridParams(phases=(table,), topic="t", handover=asked)
    if error is None:
        require_handover(params, {})
        return
    with pytest.raises(SourceUnfit, match=error):
        require_handover(params, {})
