"""The laws of sources: rows are implementations, ours and a made-up one."""

import json
import pickle
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from kaflow_engine.connectors.contract import TaskPart
from kaflow_engine.connectors.journal.journal import Journal, Message
from kaflow_engine.connectors.journal.source import JournalSource
from kaflow_engine.connectors.kafka.admin import create_topic
from kaflow_engine.connectors.kafka.delivery.deliver import SinkSettings
from kaflow_engine.connectors.kafka.delivery.topic_sink import TopicSink
from kaflow_engine.connectors.kafka.run_log.control import ControlTopic
from kaflow_engine.connectors.kafka.source import TopicSource
from kaflow_engine.connectors.sources.contract import (
    NamedSource,
    Source,
    SourcePlace,
    StartPolicy,
)
from kaflow_engine.connectors.sources.kinds import SOURCES, source_kind
from kaflow_engine.flow.records import OUTPUT, RECORDS
from kaflow_engine.flow.sources import (
    DrawnParams,
    FilesParams,
    GeneratorParams,
    HybridParams,
    SourceParams,
)
from kaflow_engine.state.storage.store import LocalStore
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
    """Return three folders, the second of which has no record."""
    return tuple(
        FilesParams(path=str(folder / f"{number}"), format="json", header=False, settle=0)
        for number in range(3)
    )


def generated() -> GeneratorParams:
    return GeneratorParams(rate=2, seed=1, records=4, start=NOW - 9_000, values=(DRAWN,))


def subject_of(name: str, request: pytest.FixtureRequest) -> Subject:
    if name == "a list":
        return Subject(ListSource(VALUES), VALUES)
    if name == "kafka":
        return Subject(topic_with_values(request), VALUES)
    folder: Path = request.getfixturevalue("tmp_path")
    if name == "webhook":
        return Subject(sent(folder), [LINES])
    if name in DATABASES:
        return Subject(opened_again(name, request, new=True), [LINES])
    if name == "hybrid":
        for number, lines in enumerate((LINES[:2], [], LINES[2:])):
            (folder / f"{number}").mkdir()
            (folder / f"{number}" / "1.json").write_bytes(b"\n".join(lines))
        return Subject(opened_again(name, request), [LINES])
    params: SourceParams = generated() if name == "generator" else written(folder / "in", name)
    found = opened(params, folder / "state")
    made = [b'{"n":%d}' % n for n in range(4)]
    return Subject(found, [made if name == "generator" else LINES])


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
        journal.append([Message(value=line)], NOW)
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


DATABASES = ["postgres", "clickhouse"]
SERVED = [pytest.param(name, marks=pytest.mark.services) for name in DATABASES]
NAMED = ["parquet", "json", "csv", "generator", "webhook", "hybrid", *SERVED]
"""Kinds of sources that files name, and their formats."""
ALL = [pytest.param("kafka", marks=pytest.mark.kafka), "a list", *NAMED]


@pytest.fixture(params=ALL)
def subject(request: pytest.FixtureRequest) -> Subject:
    return subject_of(request.param, request)


def test_every_kind_has_rows() -> None:
    assert {"files", "generator", "webhook", "hybrid", *DATABASES} == set(SOURCES)


def test_a_source_is_read_between_its_start_and_its_end(subject: Subject) -> None:
    source, values = subject.source, subject.values
    assert list(source.partitions()) == list(range(len(values)))
    assert source.latest() == {p: len(own) for p, own in enumerate(values)}
    assert source.start("earliest") == dict.fromkeys(range(len(values)), 0)
    assert source.start("latest") == source.latest()
    found = source.read(source.start("earliest"), source.latest())
    assert found.schema == RECORDS
    by_partition = [
        [row["value"] for row in found.to_pylist() if row["partition"] == p]
        for p in range(len(values))
    ]
    assert by_partition == values


@pytest.mark.parametrize("policy", ["earliest", "latest", 0, NOW - 8_000, NOW + 1])
def test_a_start_never_lies_behind_the_end(subject: Subject, policy: StartPolicy) -> None:
    end = subject.source.latest()
    assert all(0 <= at <= end[p] for p, at in subject.source.start(policy).items())


def in_order(records: pa.Table) -> list[dict[str, Any]]:
    rows: list[dict[str, Any]] = records.to_pylist()
    return sorted(rows, key=lambda row: (row["partition"], row["offset"]))


def test_a_range_gives_the_same_records_each_time(subject: Subject) -> None:
    source, values = subject.source, subject.values
    source.latest()
    start = {p: 1 if p == 0 else 0 for p in range(len(values))}
    end = {p: len(own) for p, own in enumerate(values)}
    first, again = source.read(start, end), source.read(start, end)
    assert in_order(first) == in_order(again)
    found = [(row["partition"], row["offset"], row["value"]) for row in in_order(first)]
    assert found == [
        (p, offset, value)
        for p, own in enumerate(values)
        for offset, value in enumerate(own)
        if offset >= start[p]
    ]


def test_an_empty_range_has_no_records(subject: Subject) -> None:
    end = subject.source.latest()
    assert subject.source.read(end, end).num_rows == 0


@pytest.mark.parametrize("name", NAMED)
def test_a_task_and_a_later_run_read_the_same(name: str, request: pytest.FixtureRequest) -> None:
    source = cast(NamedSource, subject_of(name, request).source)
    end = source.latest()
    for start in range(end[0]):
        for stop in range(start + 1, end[0] + 1):
            expected = source.read({0: start}, {0: stop})
            for each in (source, again := opened_again(name, request)):
                (read,) = each.reads({0: start}, {0: stop})
                sent = pickle.loads(pickle.dumps(read))  # as tasks get it
                assert pa.Table.from_batches(sent(), schema=RECORDS) == expected
            assert again.latest() == end


@pytest.mark.parametrize("name", [name for name in NAMED if name != "webhook"])
def test_another_machine_reads_the_same(name: str, request: pytest.FixtureRequest) -> None:
    source = cast(NamedSource, subject_of(name, request).source)
    end = source.latest()
    folder: Path = request.getfixturevalue("tmp_path")
    other = opened_again(name, request, folder / "elsewhere")
    for start in range(end[0]):  # as batches were cut
        other.know(json.loads(json.dumps(source.found({0: start}, {0: start + 1}))))
        assert other.read({0: 0}, {0: start + 1}) == source.read({0: 0}, {0: start + 1})
    again = opened_again(name, request, folder / "elsewhere")
    assert again.read({0: 0}, end) == source.read({0: 0}, end)


def opened_again(
    name: str, request: pytest.FixtureRequest, state: Path | None = None, *, new: bool = False
) -> NamedSource:
    folder: Path = request.getfixturevalue("tmp_path")
    clock = NOW if state is None else NOW + 5_000
    state = state or folder / "state"
    if name == "webhook":
        return JournalSource(name="s", folder=folder / "journal")
    if name in DATABASES:
        params, connection = table_with_lines(name, request, new=new)
        return opened(params, state, clock, connection)
    return opened(params_of(name, folder), state, clock)


def params_of(name: str, folder: Path) -> SourceParams:
    if name == "hybrid":
        return HybridParams(phases=phases(folder), topic=None, handover=None)
    form = cast(Any, name)
    files = FilesParams(path=str(folder / "in"), format=form, header=name == "csv", settle=0)
    return generated() if name == "generator" else files
