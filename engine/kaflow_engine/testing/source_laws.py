"""The laws of sources, as tests: who writes a source imports them and gives a fixture `subject`.

    from kaflow_engine.testing.source_laws import *

    @pytest.fixture
    def subject(tmp_path):
        return PluginSubject(MyKind(), {"file": "rows.txt"}, [[{"n": 1}, {"n": 2}]], tmp_path)

A plugin that gives its rows once is stopped after each piece, and begins again.
"""

import json
import pickle
import threading
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol, cast

import pyarrow as pa
import pytest

from kaflow_engine.connectors.journal.journal import Journal, Message
from kaflow_engine.connectors.journal.receivers import Inlet
from kaflow_engine.connectors.journal.sessions import Line, Patience
from kaflow_engine.connectors.journal.source import JournalSource
from kaflow_engine.connectors.plugin_sources.receiving import take
from kaflow_engine.connectors.plugin_sources.replayed import PluginSource
from kaflow_engine.connectors.plugin_sources.values import value_of
from kaflow_engine.connectors.sources.contract import NamedSource, Source, StartPolicy
from kaflow_engine.connectors.sources.plugin_contract import Given, Row, SourcePluginKind
from kaflow_engine.flow.origins.plugins import JournalledPluginParams
from kaflow_engine.flow.records import RECORDS

__all__ = [
    "PluginSubject",
    "Subject",
    "test_a_range_gives_the_same_records_each_time",
    "test_a_source_is_read_between_its_start_and_its_end",
    "test_a_start_never_lies_behind_the_end",
    "test_a_task_and_a_later_run_read_the_same",
    "test_an_empty_range_has_no_records",
    "test_another_machine_reads_the_same",
    "test_it_ends_when_it_is_asked_to",
]

_PATIENCE_S = 30.0


class Subject(Protocol):
    """A source under test."""

    @property
    def source(self) -> Source:
        """The source, opened."""
        ...

    @property
    def values(self) -> Sequence[Sequence[bytes]]:
        """The values of its records, by partition."""
        ...

    def again(self) -> NamedSource | None:
        """Open it as a later run does; None: Spark reads it, not a task of ours."""
        ...

    def elsewhere(self) -> NamedSource | None:
        """Open it on another machine; None: its records are on one only."""
        ...

    def stopped_in(self, limit: float) -> bool:
        """Tell whether what waits for records ends in so many seconds once it is asked to."""
        ...


class PluginSubject:
    """A kind of source of a plugin under test.

    Args:
        kind: The plugin.
        options: What an author says.
        rows: What it gives, by partition.
        folder: Where a journal and files of the plugin may be.
        settings: What a configuration says.
    """

    def __init__(
        self,
        kind: SourcePluginKind,
        options: Mapping[str, Any],
        rows: Sequence[Sequence[Row]],
        folder: Path,
        settings: Mapping[str, str] | None = None,
    ) -> None:
        self._kind, self._folder, self._settings = kind, folder, settings or {}
        self._options = kind.options.model_validate(options)
        self.values = [[value_of(row, "the test") for row in own] for own in rows]
        self._begin = time.monotonic()
        if not kind.replays:
            self._write_down()
        self.source = cast(NamedSource, self.again())

    def again(self) -> NamedSource | None:
        """Open the source, or its journal."""
        if not self._kind.replays:
            return JournalSource(name="s", folder=self._folder / "journal")
        return PluginSource(
            name="s",
            kind="a.plugin",
            source=self._opened(),
            finite=self._kind.bounded(self._options),
        )

    def elsewhere(self) -> NamedSource | None:
        """Open the source; a journal is on one machine."""
        return self.again() if self._kind.replays else None

    def stopped_in(self, limit: float) -> bool:
        """Let a plugin wait for rows, and end it."""
        if self._kind.replays:
            return True
        journal = Journal(self._folder / "journal", _now())
        line = self._line(journal, Line)
        thread = threading.Thread(target=self._take, args=(line,), daemon=True)
        thread.start()
        thread.join(0.2)
        line.stop()
        thread.join(limit)
        journal.close()
        return not thread.is_alive()

    def _write_down(self) -> None:
        """Let it give all rows, and end it after each piece, as a run that is killed does."""
        wanted = len(self.values[0])
        while (journal := Journal(self._folder / "journal", _now())).end < wanted:
            assert time.monotonic() - self._begin < _PATIENCE_S, f"{journal.end} of {wanted} rows"
            self._take(self._line(journal, _OnePiece))
            journal.close()
        assert journal.end == wanted
        journal.close()

    def _take(self, line: Line) -> None:
        take(line, "the plugin", "a.plugin", lambda inlet: self._opened())

    def _line(self, journal: Journal, kind: type[Line]) -> Line:
        bounded = self._kind.bounded(self._options)
        params = JournalledPluginParams(
            type="a.plugin", bounded=bounded, options=(), max_backlog=1_000_000
        )
        inlet = Inlet(name="s", params=params, journal=journal, secrets={}, patience=0)
        return kind(inlet=inlet, patience=Patience(seconds=_PATIENCE_S))

    def _opened(self) -> Any:
        folder = self._folder / "own"
        given = Given(name="s", options=self._options, settings=self._settings, folder=folder)
        return self._kind.open(given)


@dataclass(frozen=True, kw_only=True)
class _OnePiece(Line):
    """Ends when a piece is written down."""

    def write(self, messages: Sequence[Message], note: bytes | None = None) -> None:
        super().write(messages, note)
        self.stop()


def _now() -> int:
    return round(time.time() * 1000)


def test_a_source_is_read_between_its_start_and_its_end(subject: Subject) -> None:
    """All records are there, each at its offset."""
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
    assert by_partition == [list(own) for own in values]


@pytest.mark.parametrize(
    "policy", ["earliest", "latest", 0, 1_795_295_992_000, 1_795_296_000_001, 2**45]
)
def test_a_start_never_lies_behind_the_end(subject: Subject, policy: StartPolicy) -> None:
    """Wherever reading begins, it is where records are, or come next."""
    end = subject.source.latest()
    assert all(0 <= at <= end[p] for p, at in subject.source.start(policy).items())


def test_a_range_gives_the_same_records_each_time(subject: Subject) -> None:
    """A batch that runs again has the records that it had."""
    source, values = subject.source, subject.values
    source.latest()
    start = {p: 1 if p == 0 else 0 for p in range(len(values))}
    end = {p: len(own) for p, own in enumerate(values)}
    first, again = source.read(start, end), source.read(start, end)
    assert _in_order(first) == _in_order(again)
    found = [(row["partition"], row["offset"], row["value"]) for row in _in_order(first)]
    assert found == [
        (p, offset, value)
        for p, own in enumerate(values)
        for offset, value in enumerate(own)
        if offset >= start[p]
    ]


def test_an_empty_range_has_no_records(subject: Subject) -> None:
    """Nothing lies between an offset and itself."""
    end = subject.source.latest()
    assert subject.source.read(end, end).num_rows == 0


def test_a_task_and_a_later_run_read_the_same(subject: Subject) -> None:
    """Ranges travel to tasks by pickle, and a later run reads them as well."""
    if subject.again() is None:
        return
    source = cast(NamedSource, subject.source)
    end = source.latest()
    for start in range(end[0]):
        for stop in range(start + 1, end[0] + 1):
            expected = source.read({0: start}, {0: stop})
            for each in (source, again := cast(NamedSource, subject.again())):
                (read,) = each.reads({0: start}, {0: stop})
                sent = pickle.loads(pickle.dumps(read))
                assert pa.Table.from_batches(sent(), schema=RECORDS) == expected
            assert again.latest() == end


def test_another_machine_reads_the_same(subject: Subject) -> None:
    """Where a state is lost, another machine reads ranges with what batches know of them."""
    other = subject.elsewhere()
    if other is None:
        return
    source = cast(NamedSource, subject.source)
    end = source.latest()
    for start in range(end[0]):  # as batches were cut
        other.know(json.loads(json.dumps(source.found({0: start}, {0: start + 1}))))
        assert other.read({0: 0}, {0: start + 1}) == source.read({0: 0}, {0: start + 1})


def test_it_ends_when_it_is_asked_to(subject: Subject) -> None:
    """A run that ends does not wait for records."""
    assert subject.stopped_in(5.0)


def _in_order(records: pa.Table) -> list[dict[str, Any]]:
    rows: list[dict[str, Any]] = records.to_pylist()
    return sorted(rows, key=lambda row: (row["partition"], row["offset"]))
