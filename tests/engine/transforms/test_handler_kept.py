"""Handlers: what was answered is kept, and a second try uses it."""

import json
from collections.abc import Iterator, Mapping
from pathlib import Path

import pyarrow as pa
import pytest

from kaflow_engine.connectors.http import asking
from kaflow_engine.connectors.http.errors import HttpAway
from kaflow_engine.state.storage.store import Damaged
from tests.engine.transforms.handler_here import (
    ask,
    asked,
    failed,
    kept,
    made,
    refuse,
    risks,
    rows,
    with_risk,
)
from tests.receiver import Answer, Receiver, running_receiver


@pytest.fixture
def receiver(monkeypatch: pytest.MonkeyPatch) -> Iterator[Receiver]:
    monkeypatch.setattr(asking, "_FIRST_PAUSE", 0.001)
    with running_receiver() as found:
        yield found


def test_a_second_try_uses_what_was_answered(receiver: Receiver, tmp_path: Path) -> None:
    receiver.answer = refuse(422)
    first = ask(receiver.url, rows(1, 2, 3, 4), batch=2, answers=kept(tmp_path))
    receiver.requests.clear()
    receiver.answer = lambda request: Answer(200, '[{"risk":"another"}]')
    again = ask(receiver.url, rows(1, 2, 3, 4), batch=2, answers=kept(tmp_path, 2))
    assert (made(again), failed(again)) == (made(first), failed(first))
    assert not receiver.requests
    # another number of tasks, and one row that was not there
    less = ask(receiver.url, rows(4, 5, 2), batch=2, answers=kept(tmp_path, 2))
    assert risks(less) == [(0, "r4"), (1, "another"), (2, "r2")]
    assert [asked(r) for r in receiver.requests] == [[{"id": 5, "amount": 5.1}]]


@pytest.mark.parametrize("other", [{"batch": 8}, {"generation": 3}], ids=str)
def test_answers_are_those_of_one_batch(
    receiver: Receiver, tmp_path: Path, other: Mapping[str, int]
) -> None:
    receiver.answer = with_risk
    ask(receiver.url, rows(1), answers=kept(tmp_path))
    ask(receiver.url, rows(1), answers=kept(tmp_path, **other))
    assert len(receiver.requests) == 2


def test_a_row_with_other_values_is_another_one(receiver: Receiver, tmp_path: Path) -> None:
    receiver.answer = with_risk
    ask(receiver.url, rows(1), answers=kept(tmp_path))
    given = rows(1).set_column(1, "amount", pa.array(["5"]).cast(pa.decimal128(10, 2)))
    ask(receiver.url, given, answers=kept(tmp_path))
    assert [asked(r)["amount"] for r in receiver.requests] == [1.1, 5.0]


def test_what_was_answered_before_the_service_went_away_is_kept(
    receiver: Receiver, tmp_path: Path
) -> None:
    receiver.answer = lambda r: with_risk(r) if asked(r)["id"] < 3 else Answer(503)
    with pytest.raises(HttpAway):
        ask(receiver.url, rows(1, 2, 3), concurrency=1, retry_for=5, answers=kept(tmp_path))
    receiver.requests.clear()
    receiver.answer = with_risk
    assert len(risks(ask(receiver.url, rows(1, 2, 3), answers=kept(tmp_path, 2)))) == 3
    assert [asked(r)["id"] for r in receiver.requests] == [3]


def test_the_answer_that_the_newest_run_was_given_counts(
    receiver: Receiver, tmp_path: Path
) -> None:
    """A run that was replaced while it asked may keep its answer after the new one has its own."""
    for epoch, risk in ((2, "new"), (1, "old")):
        receiver.answer = lambda r, risk=risk: Answer(200, json.dumps({"risk": risk}))
        ask(receiver.url, rows(1), answers=kept(tmp_path / str(epoch), epoch))
        for file in (tmp_path / str(epoch) / "answers" / "7").iterdir():
            target = tmp_path / "both" / "answers" / "7" / file.name
            target.parent.mkdir(parents=True, exist_ok=True)
            file.rename(target)
    assert risks(ask(receiver.url, rows(1), answers=kept(tmp_path / "both", 3))) == [(0, "new")]


def test_answers_that_were_altered_are_no_answers(receiver: Receiver, tmp_path: Path) -> None:
    receiver.answer = with_risk
    ask(receiver.url, rows(1), answers=kept(tmp_path))
    (file,) = (tmp_path / "answers" / "7").iterdir()
    data = bytearray(file.read_bytes())
    data[-20] ^= 1
    file.write_bytes(data)
    with pytest.raises(Damaged):
        ask(receiver.url, rows(1), answers=kept(tmp_path))
