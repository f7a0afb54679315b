"""The laws of sinks, as tests: whoever writes a sink imports them and gives a fixture `subject`.

    from kaflow_engine.testing.sink_laws import *

    @pytest.fixture
    def subject(tmp_path):
        return MySubject(tmp_path)

What delivers at least once may have rows twice, and need not know what it holds.
"""

import pickle
from collections.abc import Callable, Set
from dataclasses import dataclass
from typing import Protocol

import pyarrow as pa
import pytest

from kaflow_engine.connectors.contract import (
    FinishedBatch,
    Owner,
    Sink,
    TaskPart,
    TaskSink,
    survive,
)
from kaflow_engine.connectors.holding import Holding
from kaflow_engine.errors import StateError
from kaflow_engine.flow.records import DELETED, EVENT_TIME, KEY, SLOT

__all__ = [
    "OURS",
    "Run",
    "Subject",
    "rows_of",
    "test_a_batch_that_is_delivered_twice_is_there_once",
    "test_a_batch_with_other_rows_is_refused",
    "test_it_says_which_batches_it_holds",
    "test_it_says_whose_batches_it_holds",
    "test_nothing_is_seen_of_a_batch_that_was_cut_off",
    "test_rows_are_there_once_their_batch_is_committed",
    "test_rows_wait_for_the_driver_where_it_commits",
    "test_tasks_get_it_by_pickle",
    "test_what_it_learns_of_a_batch_that_runs_again_is_the_same",
]

OURS = Owner(state="s", generation=1)


@dataclass(frozen=True)
class Run:
    """A run that has begun: what its tasks write with, and what its driver commits with."""

    task: TaskSink
    sink: Sink

    @property
    def is_exact(self) -> bool:
        """Whether each row is there once, whatever happens."""
        return self.sink.capabilities.guarantee == "exactly_once"


class Subject(Protocol):
    """A sink under test; its rows have a column `n`."""

    @property
    def last_point(self) -> str:
        """The crash point after which a task has done all but its commit, if it has one."""
        ...

    def begin(self, owner: Owner = OURS) -> Run:
        """Begin a run, as after the end of the one before."""
        ...

    def rows(self, values: list[int]) -> pa.Table:
        """Return rows as tasks get them; see `rows_of`."""
        ...

    def visible(self) -> list[int]:
        """Return the values that readers see."""
        ...

    def holdings(self) -> Set[Holding]:
        """Return what it says that it holds."""
        ...


def rows_of(values: list[int]) -> pa.Table:
    """Return rows as tasks get them where a file names the kind: `n`, and what is said of each."""
    count = len(values)
    columns = {
        "n": pa.array(values, pa.int64()),
        KEY: pa.nulls(count, pa.string()),
        DELETED: pa.array([False] * count, pa.bool_()),
        SLOT: pa.array([0] * count, pa.int32()),
        EVENT_TIME: pa.array([1_795_296_000_000] * count, pa.int64()),
    }
    return pa.table(columns)


class _Crash(BaseException):
    """Ends a task as a killed process would."""


def _write(
    subject: Subject,
    run: Run,
    batch: int,
    values: list[int],
    passing: Callable[[str], None] = survive,
) -> FinishedBatch:
    part = TaskPart(
        rows=subject.rows(values), batch=batch, epoch=1, mark="m", alone=True, passing=passing
    )
    return FinishedBatch(number=batch, mark="m", notes=run.task.write(part).notes)


def _deliver(subject: Subject, run: Run, batch: int, values: list[int]) -> None:
    run.sink.commit(_write(subject, run, batch, values))


def _seen(subject: Subject, run: Run) -> list[int]:
    found = subject.visible()
    return sorted(found if run.is_exact else {*found})


def test_rows_are_there_once_their_batch_is_committed(subject: Subject) -> None:
    """Without failures each row is there once."""
    run = subject.begin()
    _deliver(subject, run, 1, [1, 2])
    assert sorted(subject.visible()) == [1, 2]
    _deliver(subject, run, 2, [3])
    assert sorted(subject.visible()) == [1, 2, 3]


def test_a_batch_that_is_delivered_twice_is_there_once(subject: Subject) -> None:
    """A batch may run again, in another run."""
    run = subject.begin()
    _deliver(subject, run, 1, [1, 2])
    _deliver(subject, run, 2, [3])
    again = subject.begin()
    _deliver(subject, again, 2, [3])
    _deliver(subject, again, 3, [4])
    assert _seen(subject, again) == [1, 2, 3, 4]


def test_what_it_learns_of_a_batch_that_runs_again_is_the_same(subject: Subject) -> None:
    """Also where the rows are there already."""
    learned: list[object] = []
    for _ in range(2):
        run = subject.begin()
        part = TaskPart(rows=subject.rows([1, 2]), batch=1, epoch=1, mark="m", alone=True)
        written = run.task.write(part)
        learned.append([*written.learned])
        run.sink.commit(FinishedBatch(number=1, mark="m", notes=written.notes))
    assert learned[0] == learned[1]


def test_nothing_is_seen_of_a_batch_that_was_cut_off(subject: Subject) -> None:
    """A task may end before its commit."""

    def killed(point: str) -> None:
        if point == subject.last_point:
            raise _Crash

    run = subject.begin()
    _deliver(subject, run, 1, [1])
    with pytest.raises(_Crash):
        _write(subject, run, 2, [2, 3], killed)
    assert subject.visible() == [1] or not run.is_exact
    again = subject.begin()
    assert not again.sink.delivered(2)
    assert subject.visible() == [1] or not run.is_exact
    _deliver(subject, again, 2, [2, 3])
    assert _seen(subject, again) == [1, 2, 3]


def test_rows_wait_for_the_driver_where_it_commits(subject: Subject) -> None:
    """Rows are seen when the task is done, or when the driver has committed."""
    run = subject.begin()
    finished = _write(subject, run, 1, [1])
    commits = run.sink.capabilities.commit
    assert subject.visible() == ([] if commits == "driver" else [1])
    run.sink.commit(finished)
    assert subject.visible() == [1]


def test_it_says_which_batches_it_holds(subject: Subject) -> None:
    """A run that begins asks what was delivered; who does not know says no."""
    run = subject.begin()
    _deliver(subject, run, 1, [1])
    _deliver(subject, run, 2, [2])
    again = subject.begin()
    found = [again.sink.delivered(batch) for batch in (1, 2, 3)]
    assert found == [True, True, False] or (not run.is_exact and not any(found))


def test_it_says_whose_batches_it_holds(subject: Subject) -> None:
    """Batches are counted by state and generation."""
    assert not {each for each in subject.holdings() if each.batch}
    run = subject.begin()
    _deliver(subject, run, 1, [1])
    later = Owner(state="s", generation=2)
    found = {(each.state, each.generation, each.batch) for each in subject.holdings()}
    assert found == {("s", 1, 1)} or (not run.is_exact and not found)
    assert not subject.begin(later).sink.delivered(1)


def test_a_batch_with_other_rows_is_refused(subject: Subject) -> None:
    """A batch that runs again has the rows that it had."""
    run = subject.begin()
    _deliver(subject, run, 1, [1, 2])
    if run.is_exact:
        with pytest.raises(StateError):
            _deliver(subject, subject.begin(), 1, [1])
    assert sorted(subject.visible()) == [1, 2]


def test_tasks_get_it_by_pickle(subject: Subject) -> None:
    """Tasks run in other processes."""
    run = subject.begin()
    sent = Run(pickle.loads(pickle.dumps(run.task)), run.sink)
    _deliver(subject, sent, 1, [1])
    assert subject.visible() == [1]
