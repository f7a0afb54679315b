"""Webhooks: what is sent of which rows, what each answer leads to, and what a second try sends."""

import hashlib
import hmac
import json
import logging
import pickle
from collections.abc import Iterator, Mapping
from threading import Event
from typing import Any

import pyarrow as pa
import pytest

from kaflow_engine.connectors.contract import NO_ANSWERS, Answers, Output, Owner, Refused, TaskPart
from kaflow_engine.connectors.http import client
from kaflow_engine.connectors.http.errors import HttpAway, HttpUnfit
from kaflow_engine.connectors.sinks import sink_kind
from kaflow_engine.errors import SinkError
from kaflow_engine.flow.records import DELETED, KEY, SLOT
from kaflow_engine.model.columns import Column
from kaflow_engine.model.outputs.connection_specs import WebhookConnection
from kaflow_engine.state.log.answers import KeptAnswers
from kaflow_engine.state.log.batch_log import BatchLog
from kaflow_engine.state.reader import StateRef
from kaflow_engine.state.storage.store import Damaged, LocalStore
from tests.receiver import Answer, Receiver, Request, running_receiver

OWNER = Owner(state="abc", generation=2)
COLUMNS = (Column("id", "BIGINT"), Column("name", "VARCHAR"))


@pytest.fixture
def receiver(monkeypatch: pytest.MonkeyPatch) -> Iterator[Receiver]:
    monkeypatch.setattr(client, "_PAUSES", (0.0, 0.0))
    with running_receiver() as found:
        yield found


def rows(*ids: int, gone: tuple[int, ...] = (), slots: tuple[int, ...] = ()) -> pa.Table:
    return pa.table(
        {
            "id": pa.array(ids, pa.int64()),
            "name": pa.array([f"é{n}" for n in ids]),
            KEY: pa.array([f"k{n}" for n in ids]),
            DELETED: pa.array([n in gone for n in ids]),
            SLOT: pa.array(slots or [0] * len(ids), pa.int32()),
        }
    )


def send(
    url: str,
    given: pa.Table,
    *,
    batch: int | None = None,
    changes: bool = False,
    answers: Answers = NO_ANSWERS,
    about: Mapping[str, Any] = {},
    said: Mapping[str, Any] = {},
) -> tuple[Refused, ...]:
    connection = WebhookConnection.model_validate({"url": url, **about})
    output = Output(
        name="webhook:rows",
        place="webhook:rows",
        columns=COLUMNS,
        changes=changes,
        settings={"connection": "alerts", "batch": batch, **said},
        connection=connection.settings,
    )
    outlet = sink_kind("webhook").outlet
    assert outlet is not None
    task = pickle.loads(pickle.dumps(outlet.task(output, OWNER)))
    part = TaskPart(rows=given, batch=7, epoch=1, mark="m", answers=answers)
    written = task.write(part)
    assert written.rows == {"webhook:rows": given.num_rows - len(written.refused)}
    return written.refused


def bodies(receiver: Receiver) -> list[Any]:
    return [json.loads(request.body) for request in receiver.requests]


def keys(receiver: Receiver) -> list[str]:
    return [request.headers["Idempotency-Key"] for request in receiver.requests]


def places(receiver: Receiver) -> list[str]:
    return [key.rpartition("-")[0] for key in keys(receiver)]


def test_a_request_is_a_row_or_a_list_of_them(receiver: Receiver) -> None:
    assert send(f"{receiver.url}/hook?x=1", rows(1, 2)) == ()
    assert bodies(receiver) == [{"id": 1, "name": "é1"}, {"id": 2, "name": "é2"}]
    assert places(receiver) == ["abc-2-webhook-rows-0-7-0-1", "abc-2-webhook-rows-0-7-1-2"]
    assert {request.path for request in receiver.requests} == {"/hook?x=1"}
    assert {request.headers["Content-Type"] for request in receiver.requests} == {
        "application/json"
    }
    receiver.requests.clear()
    assert send(receiver.url, rows(1, 2, 3), batch=2) == ()
    assert bodies(receiver) == [
        [{"id": 1, "name": "é1"}, {"id": 2, "name": "é2"}],
        [{"id": 3, "name": "é3"}],
    ]
    assert places(receiver) == ["abc-2-webhook-rows-0-7-0-2", "abc-2-webhook-rows-0-7-2-3"]


def test_rows_that_change_say_what_happens(receiver: Receiver) -> None:
    send(receiver.url, rows(1, 2, gone=(2,)), changes=True)
    assert bodies(receiver) == [
        {"op": "upsert", "key": "k1", "row": {"id": 1, "name": "é1"}},
        {"op": "delete", "key": "k2", "row": None},
    ]


def test_who_sends_is_in_headers_and_a_signature(receiver: Receiver) -> None:
    about = {"headers": {"Authorization": "Bearer word-of-hook"}, "secret": "word-of-signature"}
    send(receiver.url, rows(1), about=about, said={"headers": '{"X-Team": "a"}'})
    (request,) = receiver.requests
    assert request.headers["X-Team"] == "a"
    assert request.headers["Authorization"] == "Bearer word-of-hook"
    signature = hmac.new(b"word-of-signature", request.body, hashlib.sha256).hexdigest()
    assert request.headers["X-Kaflow-Signature"] == f"sha256={signature}"


@pytest.mark.parametrize(
    "first",
    [Answer(503), Answer(429, "", {"Retry-After": "0"}), Answer(408), Answer(500, "oh")],
    ids=lambda answer: str(answer.status),
)
def test_what_may_heal_is_sent_again_with_its_key(receiver: Receiver, first: Answer) -> None:
    receiver.answer = lambda request: Answer(202) if receiver.requests else first
    assert send(receiver.url, rows(1)) == ()
    assert len(receiver.requests) == 2
    assert len(set(keys(receiver))) == 1


@pytest.mark.parametrize(
    ("answer", "error", "says"),
    [
        (Answer(503), HttpAway, "answers 503"),
        (Answer(429, "", {"Retry-After": "3600"}), HttpAway, "answers 429"),
        (Answer(401, "word-of-hook"), HttpUnfit, "answers 401"),
        (Answer(404), HttpUnfit, "answers 404"),
        (Answer(302, "", {"Location": "/word-of-hook"}), HttpUnfit, "answers 302"),
    ],
    ids=str,
)
def test_what_does_not_heal_ends_the_task(
    receiver: Receiver, answer: Answer, error: type[SinkError], says: str
) -> None:
    receiver.answer = lambda request: answer
    about = {"headers": {"Authorization": "word-of-hook"}}
    with pytest.raises(error) as caught:
        send(f"{receiver.url}/word-of-hook", rows(1), about=about)
    text = str(caught.value)
    assert f"webhook 'alerts' at {receiver.url} {says}" in text
    assert "word-of-hook" not in text
    assert caught.value.outage == ("retry" if error is HttpAway else "bad settings")


def test_a_server_that_is_not_there_may_come_back(
    receiver: Receiver, caplog: pytest.LogCaptureFixture
) -> None:
    with running_receiver() as gone:
        url = gone.url
    caplog.set_level(logging.INFO)
    with pytest.raises(HttpAway, match="cannot be reached: ConnectError"):
        send(f"{url}/word-of-hook", rows(1))
    send(f"{receiver.url}/word-of-hook", rows(1))
    assert "word-of-hook" not in caplog.text


def test_a_server_that_does_not_answer_is_away(receiver: Receiver) -> None:
    seen = Event()

    def late(request: Request) -> Answer:
        seen.wait()
        return Answer(200)

    receiver.answer = late
    try:
        with pytest.raises(HttpAway, match=r"did not answer in 0\.05 s"):
            send(receiver.url, rows(1), about={"timeout": "50ms"})
    finally:
        seen.set()


def refuse_odd(request: Request) -> Answer:
    found = json.loads(request.body)
    listed = found if isinstance(found, list) else [found]
    odd = any(each["id"] % 2 for each in listed)
    return Answer(422, "ids are \n even") if odd else Answer(200)


@pytest.mark.parametrize("batch", [None, 1, 2, 100])
def test_rows_that_are_not_taken_are_found_alone(receiver: Receiver, batch: int | None) -> None:
    receiver.answer = refuse_odd
    refused = send(receiver.url, rows(2, 4, 5, 6, 8, 9, slots=(1, 0, 0, 1, 0, 1)), batch=batch)
    assert refused == (
        Refused(2, "HTTP 422", "ids are even"),
        Refused(5, "HTTP 422", "ids are even"),
    )
    sent = [body if isinstance(body, list) else [body] for body in map(_json, receiver.taken)]
    assert [row["id"] for body in sent for row in body] == [4, 8, 2, 6]
    assert len(set(keys(receiver))) == len(receiver.requests)


def _json(request: Request) -> Any:
    return json.loads(request.body)


def answers_of(folder: Any, batch: int = 7, generation: int = 2) -> KeptAnswers:
    return KeptAnswers(LocalStore(folder), StateRef("abc", generation), batch)


def test_secrets_that_a_server_sends_back_are_masked(receiver: Receiver) -> None:
    receiver.answer = lambda request: Answer(422, "token-of-hook-99 signature-of-hook-99")
    about = {
        "headers": {"Authorization": "Bearer token-of-hook-99"},
        "secret": "signature-of-hook-99",
    }
    assert send(receiver.url, rows(1), about=about) == (Refused(0, "HTTP 422", "*** ***"),)


def test_a_batch_that_runs_again_sends_only_what_has_no_answer(
    receiver: Receiver, tmp_path: Any
) -> None:
    def first(request: Request) -> Answer:
        return Answer(503) if json.loads(request.body)["id"] == 8 else refuse_odd(request)

    given = rows(2, 4, 5, 6, 8, 9, slots=(0, 0, 0, 1, 1, 1))
    receiver.answer = first
    with pytest.raises(HttpAway):
        send(receiver.url, given, answers=answers_of(tmp_path))
    before = dict.fromkeys(keys(receiver))
    receiver.requests.clear()
    receiver.answer = lambda request: Answer(200)  # it would take what it refused before
    refused = send(receiver.url, given, answers=answers_of(tmp_path))
    assert [(one.row, one.error) for one in refused] == [(2, "HTTP 422")]
    assert [body["id"] for body in bodies(receiver)] == [6, 8, 9]
    assert keys(receiver)[:2] == [*before][-2:]
    receiver.requests.clear()
    assert send(receiver.url, given, answers=answers_of(tmp_path)) == refused
    assert receiver.requests == []


def test_answers_are_those_of_the_very_rows(receiver: Receiver, tmp_path: Any) -> None:
    send(receiver.url, rows(2, 4), answers=answers_of(tmp_path))
    for other in (answers_of(tmp_path, batch=8), answers_of(tmp_path, generation=3)):
        assert other.kept("webhook:rows/0") is None
    send(receiver.url, rows(2), answers=answers_of(tmp_path))
    assert [body["id"] for body in bodies(receiver)] == [2, 4, 2]


def test_other_rows_of_the_same_batch_have_other_keys(receiver: Receiver) -> None:
    """A receiver that knows a key must not take rows for those that it has."""
    for ids in ((1, 2), (1, 2), (3, 2)):
        send(receiver.url, rows(*ids))
    first, again, other = (keys(receiver)[at : at + 2] for at in (0, 2, 4))
    assert first == again
    assert (other[0] != first[0], other[1] == first[1]) == (True, True)


def test_answers_go_with_their_batch_and_are_sealed(tmp_path: Any) -> None:
    for batch in (6, 7):
        answers_of(tmp_path, batch).keep("a", {"n": batch})
    log = BatchLog(LocalStore(tmp_path))
    log.prune(before=7)
    assert answers_of(tmp_path, 6).kept("a") is None
    assert answers_of(tmp_path).kept("a") == {"n": 7}
    (file,) = tmp_path.glob("answers/7/*.json")
    file.write_bytes(file.read_bytes().replace(b'"n": 7', b'"n": 8'))
    with pytest.raises(Damaged, match="answers/7/"):
        answers_of(tmp_path).kept("a")


@pytest.mark.parametrize("connection", [{}, {"headers": {"X-Tenant": "a"}}])
def test_an_address_of_the_output_goes_before_that_of_its_connection(
    receiver: Receiver, connection: dict[str, Any]
) -> None:
    of = {"url": "http://127.0.0.1:9/other", **connection}
    known = dict(WebhookConnection.model_validate(of).settings) if connection else dict[str, str]()
    settings = {"connection": "default", "batch": None, "url": receiver.url}
    output = Output(
        name="webhook:alerts",
        place="webhook:alerts",
        columns=COLUMNS,
        settings=settings,
        connection=known,
    )
    outlet = sink_kind("webhook").outlet
    assert outlet is not None
    sink = outlet.task(output, OWNER)
    assert sink.write(TaskPart(rows=rows(1), batch=7, epoch=1)).refused == ()
    (request,) = receiver.requests
    assert request.body == '{"id":1,"name":"é1"}'.encode()
    assert request.headers.get("X-Tenant") == connection.get("headers", {}).get("X-Tenant")
