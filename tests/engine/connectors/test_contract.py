"""The laws of sinks: rows are implementations, ours and made-up ones."""

import pickle
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from kaflow_engine.connectors.contract import (
    Capabilities,
    FinishedBatch,
    Owner,
    TaskPart,
    survive,
)
from kaflow_engine.connectors.delta.errors import TableUnfit
from kaflow_engine.connectors.kafka.errors import (
    BrokerAway,
    BrokerAwaySink,
    LoginRefused,
    LoginRefusedSink,
    RowRefused,
    TransactionTimeoutRefused,
)
from kaflow_engine.connectors.sinks import SINKS, outage_of, sink_kind
from kaflow_engine.errors import SinkError, StateError, TakenOver, UnknownName
from tests.engine.connectors.made_up_here import (
    FolderSink,
    LedgerSink,
    folder_holdings,
    folder_values,
    ledger_holdings,
    ledger_values,
)
from tests.engine.connectors.subjects_here import (
    DeltaSubject,
    KafkaSubject,
    MadeUpSubject,
    Run,
    Subject,
)


class Crash(BaseException):
    """Ends a task as a killed process would."""


@pytest.fixture(
    params=[pytest.param("kafka", marks=pytest.mark.kafka), "delta", "a ledger", "a folder"]
)
def subject(request: pytest.FixtureRequest, tmp_path: Path) -> Subject:
    match request.param:
        case "kafka":
            kafka = request.getfixturevalue("kafka")
            return KafkaSubject(kafka, request.getfixturevalue("unique"))
        case "delta":
            return DeltaSubject(tmp_path)
        case "a ledger":
            path = tmp_path / "ledger.db"
            return MadeUpSubject(path, LedgerSink, "before_commit", ledger_values, ledger_holdings)
        case _:
            path = tmp_path / "folder"
            return MadeUpSubject(path, FolderSink, "files_written", folder_values, folder_holdings)


def write(
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


def deliver(subject: Subject, run: Run, batch: int, values: list[int]) -> None:
    run.sink.commit(write(subject, run, batch, values))


def test_rows_are_there_once_their_batch_is_committed(subject: Subject) -> None:
    run = subject.begin()
    deliver(subject, run, 1, [1, 2])
    assert sorted(subject.visible()) == [1, 2]
    deliver(subject, run, 2, [3])
    assert sorted(subject.visible()) == [1, 2, 3]


def test_a_batch_that_is_delivered_twice_is_there_once(subject: Subject) -> None:
    run = subject.begin()
    deliver(subject, run, 1, [1, 2])
    deliver(subject, run, 2, [3])
    again = subject.begin()
    deliver(subject, again, 2, [3])
    deliver(subject, again, 3, [4])
    assert sorted(subject.visible()) == [1, 2, 3, 4]


def test_nothing_is_seen_of_a_batch_that_was_cut_off(subject: Subject) -> None:
    def killed(point: str) -> None:
        if point == subject.last_point:
            raise Crash

    run = subject.begin()
    deliver(subject, run, 1, [1])
    with pytest.raises(Crash):
        write(subject, run, 2, [2, 3], killed)
    assert subject.visible() == [1]
    again = subject.begin()
    assert not again.sink.delivered(2)
    assert subject.visible() == [1]
    deliver(subject, again, 2, [2, 3])
    assert sorted(subject.visible()) == [1, 2, 3]


def test_rows_wait_for_the_driver_where_it_commits(subject: Subject) -> None:
    run = subject.begin()
    finished = write(subject, run, 1, [1])
    commits = run.sink.capabilities.commit
    assert subject.visible() == ([] if commits == "driver" else [1])
    run.sink.commit(finished)
    assert subject.visible() == [1]


def test_it_says_which_batches_it_holds(subject: Subject) -> None:
    run = subject.begin()
    deliver(subject, run, 1, [1])
    deliver(subject, run, 2, [2])
    again = subject.begin()
    assert [again.sink.delivered(batch) for batch in (1, 2, 3)] == [True, True, False]


def test_it_says_whose_batches_it_holds(subject: Subject) -> None:
    assert not {each for each in subject.holdings() if each.batch}
    deliver(subject, subject.begin(), 1, [1])
    later = Owner(state="s", generation=2)
    found = {(each.state, each.generation, each.batch) for each in subject.holdings()}
    assert found == {("s", 1, 1)}
    assert not subject.begin(later).sink.delivered(1)


def test_a_batch_with_other_rows_is_refused(subject: Subject) -> None:
    deliver(subject, subject.begin(), 1, [1, 2])
    with pytest.raises(StateError):
        deliver(subject, subject.begin(), 1, [1])
    assert sorted(subject.visible()) == [1, 2]


def test_tasks_get_it_by_pickle(subject: Subject) -> None:
    run = subject.begin()
    sent = Run(pickle.loads(pickle.dumps(run.task)), run.sink)
    deliver(subject, sent, 1, [1])
    assert subject.visible() == [1]


@pytest.mark.parametrize("name", sorted(SINKS))
@pytest.mark.parametrize("delivery", ["exactly_once", "at_least_once"])
def test_promises_have_reasons(name: str, delivery: Any) -> None:
    found = sink_kind(name).capabilities(delivery)
    assert isinstance(found, Capabilities)
    assert found.accepts
    assert found.reason
    assert delivery == "at_least_once" or found.guarantee == "exactly_once"


@pytest.mark.parametrize(
    ("error", "answer"),
    [
        (BrokerAway("x"), "retry"),
        (BrokerAwaySink("x"), "retry"),
        (RowRefused("x"), "stop"),
        (LoginRefused("x"), "bad settings"),
        (LoginRefusedSink("x"), "bad settings"),
        (TransactionTimeoutRefused("x"), "bad settings"),
        (TableUnfit("x"), "bad settings"),
        (TakenOver("x"), None),
        (SinkError("the broker is away"), None),  # its class decides, not its words
        (OSError("x"), None),
    ],
)
def test_outages_are_told_by_class(error: BaseException, answer: str | None) -> None:
    assert outage_of(error) == answer


def test_an_unknown_kind_of_sink_lists_what_there_is() -> None:
    with pytest.raises(UnknownName, match="unknown sink 'kafca'") as caught:
        sink_kind("kafca")
    assert caught.value.hint == "did you mean 'kafka'?"
