"""Handlers: what a service is asked, what each answer leads to, and what a second try asks."""

import hashlib
import hmac
import json
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from threading import Event
from typing import Any

import pyarrow as pa
import pytest

from kaflow_engine.connectors.http import asking
from kaflow_engine.connectors.http.errors import HttpAway, HttpUnfit
from kaflow_engine.errors import SinkError
from kaflow_engine.flow.transforms import HandlerParams, Transform
from kaflow_engine.model.columns import Column
from kaflow_engine.operators.transform.contract import TransformBatch, Transformed
from kaflow_engine.operators.transform.kinds import transform_kind
from kaflow_engine.state.answers import NO_ANSWERS, Answers
from kaflow_engine.state.log.answers import KeptAnswers
from kaflow_engine.state.reader import StateRef
from kaflow_engine.state.storage.store import Damaged, LocalStore
from tests.receiver import Answer, Receiver, Request, running_receiver

COLUMNS = (Column("id", "BIGINT"), Column("amount", "DECIMAL(10,2)"))
RISK = Column("risk", "VARCHAR")


@pytest.fixture
def receiver(monkeypatch: pytest.MonkeyPatch) -> Iterator[Receiver]:
    monkeypatch.setattr(asking, "_FIRST_PAUSE", 0.001)
    with running_receiver() as found:
        yield found


def rows(*ids: int) -> pa.Table:
    amounts = pa.array([f"{n}.10" for n in ids]).cast(pa.decimal128(10, 2))
    return pa.table({"id": pa.array(ids, pa.int64()), "amount": amounts})


def kept(folder: Path, epoch: int = 1, *, batch: int = 7, generation: int = 2) -> Answers:
    return KeptAnswers(LocalStore(folder), StateRef("abc", generation), batch, epoch)


def ask(
    url: str,
    given: pa.Table,
    *,
    answers: Answers = NO_ANSWERS,
    results: tuple[Column, ...] = (*COLUMNS, RISK),
    secrets: Mapping[str, str] = {},
    **said: Any,
) -> Transformed:
    params = HandlerParams(
        url=url,
        headers=(),
        secret_headers=(),
        secret=None,
        batch=None,
        concurrency=4,
        envelope="none",
        timeout=10_000,
        retry_for=10_000,
    )
    transform = Transform(
        id="q0.transform",
        inputs=("q0.enter",),
        alias="transform",
        name="enriched",
        columns=COLUMNS,
        passed=(),
        results=results,
        params=replace(params, **said),
    )
    identities = pa.table({"t_part": [0] * given.num_rows, "t_off": given["id"]})
    return transform_kind("handler").open(transform)(
        given,
        TransformBatch(
            batch=7,
            batch_time=0,
            mark="m",
            identities=lambda: identities,
            answers=answers,
            secrets=secrets,
        ),
    )


def asked(request: Request) -> Any:
    return json.loads(request.body)


def with_risk(request: Request) -> Answer:
    def of(row: Mapping[str, Any]) -> Mapping[str, Any]:
        return {**row, "risk": f"r{row['id']}"}

    found = asked(request)
    return Answer(200, json.dumps([of(r) for r in found] if isinstance(found, list) else of(found)))


def made(found: Transformed) -> list[tuple[int, Mapping[str, Any]]]:
    return list(zip(found.origin.to_pylist(), found.rows.to_pylist(), strict=True))


def risks(found: Transformed) -> list[tuple[int, Any]]:
    return [(origin, row["risk"]) for origin, row in made(found)]


def failed(found: Transformed) -> list[tuple[int, str, str]]:
    return [(each.row, each.error, each.message) for each in found.failures]


def test_a_request_is_a_row_or_a_list_of_them(receiver: Receiver) -> None:
    receiver.answer = with_risk
    assert risks(ask(receiver.url, rows(1, 2))) == [(0, "r1"), (1, "r2")]
    assert sorted(r.body for r in receiver.requests) == [
        b'{"id":1,"amount":1.10}',
        b'{"id":2,"amount":2.10}',
    ]
    receiver.requests.clear()
    assert risks(ask(f"{receiver.url}/score?v=2", rows(1, 2, 3), batch=2)) == [
        (0, "r1"),
        (1, "r2"),
        (2, "r3"),
    ]
    assert sorted(len(asked(r)) for r in receiver.requests) == [1, 2]
    assert {r.path for r in receiver.requests} == {"/score?v=2"}
    assert len({r.headers["Idempotency-Key"] for r in receiver.requests}) == 2


def test_a_row_may_stand_in_an_envelope(receiver: Receiver) -> None:
    def answer(request: Request) -> Answer:
        said = [{"metadata": {}, "data": {"risk": "high"}} for _ in asked(request)]
        return Answer(200, json.dumps(said))

    receiver.answer = answer
    assert risks(ask(receiver.url, rows(1), batch=10, envelope="metadata")) == [(0, "high")]
    assert asked(receiver.requests[0]) == [
        {"metadata": {"op": "i"}, "data": {"id": 1, "amount": 1.1}}
    ]


def test_columns_that_an_answer_does_not_have_keep_their_values(receiver: Receiver) -> None:
    said = '[{"amount":7.70,"risk":"a"},{"risk":"b","id":12345678901234567890e-1}, {"id":null}]'
    receiver.answer = lambda request: Answer(200, said)
    found = ask(receiver.url, rows(1, 2, 3), batch=10)
    texts = [{k: str(v) for k, v in row.items()} for _, row in made(found)]
    assert texts == [
        {"id": "1", "amount": "7.70", "risk": "a"},
        {"id": "1234567890123456789", "amount": "2.10", "risk": "b"},
        {"id": "None", "amount": "3.10", "risk": "None"},
    ]
    assert not found.failures


def test_who_asks_is_in_headers_and_a_signature(receiver: Receiver) -> None:
    receiver.answer = with_risk
    ask(
        receiver.url,
        rows(1),
        headers=(("X-Tenant", "acme"),),
        secret_headers=(("Authorization", "crm"),),
        secret="signing",
        secrets={"crm": "Bearer word-of-handler", "signing": "word-of-signature"},
    )
    (request,) = receiver.requests
    assert request.headers["Authorization"] == "Bearer word-of-handler"
    assert request.headers["X-Tenant"] == "acme"
    signature = hmac.new(b"word-of-signature", request.body, hashlib.sha256).hexdigest()
    assert request.headers["X-Kaflow-Signature"] == f"sha256={signature}"


@pytest.mark.parametrize(
    "first",
    [Answer(503), Answer(429, "", {"Retry-After": "0"}), Answer(408), Answer(500, "oh")],
    ids=lambda answer: str(answer.status),
)
def test_what_may_heal_is_asked_again_with_its_key(receiver: Receiver, first: Answer) -> None:
    def answer(request: Request) -> Answer:
        return with_risk(request) if len(receiver.requests) >= 3 else first

    receiver.answer = answer
    assert risks(ask(receiver.url, rows(1))) == [(0, "r1")]
    assert len(receiver.requests) == 4
    assert len({r.headers["Idempotency-Key"] for r in receiver.requests}) == 1


@pytest.mark.parametrize(
    ("answer", "error", "says"),
    [
        (Answer(503), HttpAway, "answers 503"),
        (Answer(429, "", {"Retry-After": "3600"}), HttpAway, "answers 429"),
        (Answer(401, "word-of-handler"), HttpUnfit, "answers 401"),
        (Answer(404), HttpUnfit, "answers 404"),
        (Answer(302, "", {"Location": "/word-of-handler"}), HttpUnfit, "answers 302"),
    ],
    ids=str,
)
def test_what_does_not_heal_ends_the_task(
    receiver: Receiver, answer: Answer, error: type[SinkError], says: str
) -> None:
    receiver.answer = lambda request: answer
    with pytest.raises(error) as caught:
        ask(
            f"{receiver.url}/word-of-handler",
            rows(*range(20)),
            retry_for=50,
            secret_headers=(("Authorization", "crm"),),
            secrets={"crm": "word-of-handler"},
        )
    assert f"handler 'enriched' at {receiver.url} {says}" in str(caught.value)
    assert "word-of-handler" not in str(caught.value)
    assert caught.value.outage == ("retry" if error is HttpAway else "bad settings")


def test_a_service_that_is_not_there_or_does_not_answer_is_away(receiver: Receiver) -> None:
    with running_receiver() as gone:
        url = gone.url
    with pytest.raises(HttpAway, match="cannot be reached: ConnectError"):
        ask(url, rows(1), retry_for=20)
    seen = Event()

    def late(request: Request) -> Answer:
        seen.wait()
        return Answer(200)

    receiver.answer = late
    try:
        with pytest.raises(HttpAway, match=r"did not answer in 0\.05 s"):
            ask(receiver.url, rows(1), timeout=50, retry_for=20)
    finally:
        seen.set()


def test_answers_that_come_in_another_order_are_those_of_their_rows(receiver: Receiver) -> None:
    last = Event()

    def answer(request: Request) -> Answer:
        if asked(request)["id"] < 4:
            last.wait()
        else:
            last.set()
        return with_risk(request)

    receiver.answer = answer
    found = ask(receiver.url, rows(1, 2, 3, 4), concurrency=4)
    assert risks(found) == [(0, "r1"), (1, "r2"), (2, "r3"), (3, "r4")]


def test_no_more_requests_are_in_flight_than_allowed(receiver: Receiver) -> None:
    together: list[int] = []
    now: set[int] = set()

    def answer(request: Request) -> Answer:
        now.add(asked(request)["id"])
        together.append(len(now))
        now.discard(asked(request)["id"])
        return with_risk(request)

    receiver.answer = answer
    assert len(risks(ask(receiver.url, rows(*range(40)), concurrency=2))) == 40
    assert max(together) <= 2


def refuse(status: int) -> Callable[[Request], Answer]:
    def answer(request: Request) -> Answer:
        if any(row["id"] == 3 for row in asked(request)):
            return Answer(status, "no\n3s")
        return with_risk(request)

    return answer


def says(text: str) -> Callable[[Request], Answer]:
    def answer(request: Request) -> Answer:
        three = any(row["id"] == 3 for row in asked(request))
        return Answer(200, text) if three else with_risk(request)

    return answer


def replaces(with_: str) -> Callable[[Request], Answer]:
    def answer(request: Request) -> Answer:
        texts = (with_ if row["id"] == 3 else json.dumps(row) for row in asked(request))
        return Answer(200, f"[{','.join(t for t in texts if t)}]")

    return answer


@pytest.mark.parametrize(
    ("answer", "error", "message", "requests"),
    [
        (refuse(422), "HTTP 422", "no 3s", 5),
        (refuse(400), "HTTP 400", "no 3s", 5),
        (refuse(413), "HTTP 413", "no 3s", 5),
        (says(""), "WrongAnswer", "the answer is empty", 5),
        (says("<html>"), "WrongAnswer", "the answer is not JSON", 5),
        (says('{"id":3}'), "WrongAnswer", "the answer is not a list of rows", 5),
        (says("[{},{},{}]"), "WrongAnswer", "the answer has 3 rows, and the request has 1", 5),
        (replaces(""), "WrongAnswer", "the answer has 0 rows, and the request has 1", 5),
        (replaces("null"), "NotAnObject", "the answer: the value is not a JSON object: null", 1),
        (replaces('{"id": NaN}'), "InvalidJson", None, 1),
        (replaces('{"id": "three"}'), "WrongType", None, 1),
        (replaces('{"amount": 123456789.5}'), "WrongType", None, 1),
    ],
)
def test_what_is_wrong_with_an_answer_concerns_its_row_alone(
    receiver: Receiver,
    answer: Callable[[Request], Answer],
    error: str,
    message: str | None,
    requests: int,
) -> None:
    receiver.answer = answer
    found = ask(receiver.url, rows(1, 2, 3, 4), batch=4, concurrency=1)
    assert found.origin.to_pylist() == [0, 1, 3]
    ((row, kind, said),) = failed(found)
    assert (row, kind) == (2, error)
    assert message is None or said == message
    assert len(receiver.requests) == requests


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


def test_rows_that_no_one_can_tell_apart_are_asked_about_once(receiver: Receiver) -> None:
    receiver.answer = with_risk
    assert risks(ask(receiver.url, rows(1, 1, 2))) == [(0, "r1"), (1, "r1"), (2, "r2")]
    assert len(receiver.requests) == 2


def test_no_rows_are_no_request(receiver: Receiver) -> None:
    found = ask(receiver.url, rows())
    assert found.rows.column_names == ["id", "amount", "risk"]
    assert not receiver.requests
