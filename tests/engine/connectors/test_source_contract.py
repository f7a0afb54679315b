"""The laws of sources: rows are implementations, ours and a made-up one."""

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from decimal import Decimal
from functools import partial
from pathlib import Path
from typing import Any, cast

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from kaflow_engine.connectors.contract import TaskPart
from kaflow_engine.connectors.journal.journal import Journal, Message
from kaflow_engine.connectors.journal.receivers import RECEIVERS, receiver
from kaflow_engine.connectors.journal.source import JournalSource
from kaflow_engine.connectors.kafka.admin import create_topic
from kaflow_engine.connectors.kafka.delivery.deliver import SinkSettings
from kaflow_engine.connectors.kafka.delivery.topic_sink import TopicSink
from kaflow_engine.connectors.kafka.run_log.control import ControlTopic
from kaflow_engine.connectors.kafka.source import TopicSource
from kaflow_engine.connectors.plugins import source_plugin
from kaflow_engine.connectors.sources.contract import NamedSource, Source, SourcePlace
from kaflow_engine.connectors.sources.kinds import SOURCES, source_kind
from kaflow_engine.flow.origins.files import FilesParams
from kaflow_engine.flow.origins.hybrid import HybridParams
from kaflow_engine.flow.records import OUTPUT
from kaflow_engine.flow.sources import (
    DrawnParams,
    GeneratorParams,
    SourceParams,
)
from kaflow_engine.state.storage.store import LocalStore
from kaflow_engine.testing.source_laws import *  # noqa: F403
from kaflow_engine.testing.source_laws import PluginSubject
from tests.engine.connectors.database_here import table_with_lines
from tests.engine.connectors.made_up_here import ListSource

NOW = 1_795_296_000_000
VALUES = [[b"a", b"b", b"c"], [b"d"], []]
LINES = [b'{"a":1}', b'{"a":2}', b'{"a":null}', b'{"a":4}']
DRAWN = DrawnParams(
    name="n",
    distribution="sequence",
    min=0,
    max=9,
    digits=0,
    mean=0,
    deviation=1,
    of=(),
    prefix=None,
    nulls=0,
)


@dataclass(frozen=True)
class Subject:
    """A source, and the values of its records by partition."""

    source: Source
    values: list[list[bytes]]
    again: Callable[[], NamedSource | None] = lambda: None
    elsewhere: Callable[[], NamedSource | None] = lambda: None

    def stopped_in(self, limit: float) -> bool:
        return True


def written(folder: Path, form: str) -> FilesParams:
    """Write two files with the four records, of whatever form."""
    folder.mkdir()
    ends = {"json": b"\n", "csv": b"\r\n"}
    for name, lines in (("1", LINES[:3]), ("2", LINES[3:])):
        path = folder / f"{name}.{form}"
        if form == "parquet":
            rows = pa.table({"a": [1, 2, None] if name == "1" else [4]})
            pq.write_table(rows, path, row_group_size=2)
        else:
            head = b"a\r\n" if form == "csv" else b"\xef\xbb\xbf\n"
            path.write_bytes(head + ends[form].join(lines))
    return FilesParams(path=str(folder), format=cast(Any, form), header=form == "csv", settle=0)


def phases(folder: Path) -> tuple[FilesParams, ...]:
    """Write three folders with the four records, the second of which has none."""
    for number, lines in enumerate((LINES[:2], [], LINES[2:])):
        (folder / f"{number}").mkdir()
        (folder / f"{number}" / "1.json").write_bytes(b"\n".join(lines))
    return tuple(
        FilesParams(path=str(folder / f"{number}"), format="json", header=False, settle=0)
        for number in range(3)
    )


def generated() -> GeneratorParams:
    return GeneratorParams(rate=2, seed=1, records=4, start=NOW - 9_000, values=(DRAWN,))


def subject_of(name: str, request: pytest.FixtureRequest) -> "Subject | PluginSubject":
    if name == "a list":
        return Subject(ListSource(VALUES), VALUES)
    if name == "kafka":
        return Subject(topic_with_values(request), VALUES)
    folder: Path = request.getfixturevalue("tmp_path")
    if name in FROZEN:
        kind, options, rows = FROZEN[name]
        return PluginSubject(source_plugin(kind), options, rows, folder)
    if name == "webhook":
        source = sent(folder)
        again = partial(JournalSource, name="s", folder=folder / "journal")
        return Subject(source, [LINES], again)
    if name in DATABASES:
        params, connection = table_with_lines(name, request)
        return subject_at(folder, params, [LINES], connection)
    if name == "hybrid":
        params = HybridParams(phases=phases(folder), topic=None, handover=None)
        return subject_at(folder, params, [LINES])
    if name == "generator":
        return subject_at(folder, generated(), [[b'{"n":%d}' % n for n in range(4)]])
    return subject_at(folder, written(folder / "in", name), [LINES])


def subject_at(
    folder: Path,
    params: SourceParams,
    values: list[list[bytes]],
    connection: Mapping[str, str] | None = None,
) -> Subject:
    there = partial(opened, params, connection=connection)
    return Subject(
        there(folder / "state"),
        values,
        again=partial(there, folder / "state"),
        elsewhere=partial(there, folder / "elsewhere", clock=NOW + 5_000),
    )


def opened(
    params: SourceParams,
    state: Path,
    clock: int = NOW,
    connection: Mapping[str, str] | None = None,
) -> NamedSource:
    if isinstance(params, HybridParams):
        connection = {"phases": json.dumps({str(n): {} for n in range(len(params.phases))})}
    place = SourcePlace(
        name="s",
        store=LocalStore(state),
        journal=state,
        clock=lambda: clock,
        connection=connection or {},
    )
    return source_kind(params.type).open(params, place)


def sent(folder: Path) -> NamedSource:
    """Write requests down, and read them as a process that did not write them."""
    journal = Journal(folder / "journal", NOW)
    for line in LINES:
        journal.append([Message(value=line)], NOW, note=line)
    journal.close()
    return JournalSource(name="s", folder=folder / "journal")


def topic_with_values(request: pytest.FixtureRequest) -> TopicSource:
    kafka, topic = request.getfixturevalue("kafka"), request.getfixturevalue("unique")
    create_topic(kafka, topic, len(VALUES))
    empty = {"topic": topic, "slot": 0, "key": None, "timestamp": NOW, "kind": 0}
    rows = [
        {**empty, "value": value, "partition": p}
        for p, values in enumerate(VALUES)
        for value in values
    ]
    settings = SinkSettings(
        kafka=kafka,
        pipeline_id=topic,
        state_id="s",
        generation=1,
        sink="out",
        epoch=ControlTopic(kafka, topic).start_run("s", 1).epoch,
        exactly_once=False,
    )
    table = pa.Table.from_pylist(rows, schema=OUTPUT)
    TopicSink(settings).write(TaskPart(rows=table, batch=1, epoch=1))
    return TopicSource(kafka, topic)


FROZEN: dict[str, tuple[str, dict[str, Any], list[list[Any]]]] = {
    "numbers of a plugin": (
        "frozen.numbers",
        {"count": 4, "partitions": 2},
        [[{"n": n, "half": Decimal(n) / 2} for n in range(4)]] * 2,
    ),
    "letters of a plugin": (
        "frozen.letters",
        {"text": "abcde", "fails_once": False},
        [[{"place": n, "letter": letter} for n, letter in enumerate("abcde")]],
    ),
}
"""Of the plugin that was frozen at version 1."""
DATABASES = ["postgres", "clickhouse"]
SERVED = [pytest.param(name, marks=pytest.mark.services) for name in DATABASES]
NAMED = ["parquet", "json", "csv", "generator", "webhook", "hybrid", *FROZEN, *SERVED]
"""Kinds of sources that files name, and their formats."""
ALL = [pytest.param("kafka", marks=pytest.mark.kafka), "a list", *NAMED]


@pytest.fixture(params=ALL)
def subject(request: pytest.FixtureRequest, frozen_plugins: None) -> "Subject | PluginSubject":
    return subject_of(request.param, request)


def test_every_kind_has_rows() -> None:
    assert {"files", "generator", "hybrid", *RECEIVERS, *DATABASES} == set(SOURCES)
    assert len({SOURCES[kind] for kind in RECEIVERS} - {SOURCES["pyspark"]}) == 1


@pytest.mark.parametrize("kind", [*RECEIVERS, "a.plugin"])
def test_every_journal_has_a_receiver(kind: str) -> None:
    with receiver(kind).receiving(()):
        pass
