"""Handlers: what a service is asked, what each answer leads to, and what a second try asks."""

import hashlib
import hmac
import json
from collections.abc import Callable, Iterator
from threading import Event

import pytest

from kaflow_engine.connectors.http import asking
from kaflow_engine.connectors.http.errors import HttpAway, HttpUnfit
from kaflow_engine.errors import SinkError
from kaflow_engine.flow.transforms import HandlerParams
from kaflow_engine.measures import Measures
from kaflow_engine.transforms.handler.handler import endpoint_of
from kaflow_engine.transforms.handler.question import Question, Service
from tests.engine.transforms.handler_here import (
    ask,
    asked,
    failed,
    made,
    refuse,
    risks,
    rows,
    with_risk,
)
from tests.receiver import Answer, Receiver, Request, running_receiver


@pytest.fixture
def receiver(monkeypatch: pytest.MonkeyPatch) -> Iterator[Receiver]:
    monkeypatch.setattr(asking, "_FIRST_PAUSE", 0.001)
    with running_receiver() as found:
        yield found


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


@pytest.mark.parametrize(
    ("said", "sent"),
    [
        ({}, {"metadata": {"op": "i"}, "data": {"id": 1, "amount": 1.1}}),
        ({"op_column": "id"}, {"metadata": {"op": 1}, "data": {"amount": 1.1}}),
    ],
)
def test_a_row_may_stand_in_an_envelope(
    receiver: Receiver, said: dict[str, str], sent: object
) -> None:
    def answer(request: Request) -> Answer:
        risks = [{"metadata": {}, "data": {"risk": "high"}} for _ in asked(request)]
        return Answer(200, json.dumps(risks))

    receiver.answer = answer
    found = ask(receiver.url, rows(1), batch=10, envelope="metadata", **said)
    assert risks(found) == [(0, "high")]
    assert found.rows["id"].to_pylist() == [1]
    assert asked(receiver.requests[0]) == [sent]


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
    measures = Measures()
    assert risks(ask(receiver.url, rows(1), measures=measures)) == [(0, "r1")]
    assert len(receiver.requests) == 4
    counted = [(dict(s.labels)["outcome"], m.value) for s, m in measures.taken().items()]
    assert counted == [("retried", 3), ("taken", 1)]
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


def test_a_token_is_masked_without_its_kind(receiver: Receiver) -> None:
    receiver.answer = lambda request: Answer(422, "who is token-of-echo-88?")
    found = ask(
        receiver.url,
        rows(1),
        secret_headers=(("Authorization", "crm"),),
        secrets={"crm": "Bearer token-of-echo-88"},
    )
    assert failed(found) == [(0, "HTTP 422", "who is ***?")]


def test_no_halves_are_asked_about_once_another_request_has_failed(receiver: Receiver) -> None:
    receiver.answer = refuse(422)
    stop = Event()
    stop.set()
    params = HandlerParams(
        url=receiver.url,
        headers=(),
        secret_headers=(),
        secret=None,
        batch=4,
        concurrency=1,
        envelope="none",
        timeout=10_000,
        retry_for=10_000,
    )
    service = Service(
        endpoint=endpoint_of("enriched", params, {}),
        params=params,
        about="it",
        on_answer=lambda outcome, status: None,
    )
    question = Question([b'{"id":3}', b'{"id":4}'], ["a", "b"])
    with pytest.raises(HttpAway):
        list(service.answers(question, stop))
    assert len(receiver.requests) == 1


def test_rows_that_no_one_can_tell_apart_are_asked_about_once(receiver: Receiver) -> None:
    receiver.answer = with_risk
    assert risks(ask(receiver.url, rows(1, 1, 2))) == [(0, "r1"), (1, "r1"), (2, "r2")]
    assert len(receiver.requests) == 2


def test_no_rows_are_no_request(receiver: Receiver) -> None:
    found = ask(receiver.url, rows())
    assert found.rows.column_names == ["id", "amount", "risk"]
    assert not receiver.requests
