"""One request: what its status says before its body does, and how much of a body is read."""

import time
from collections.abc import Iterator
from threading import Event

import pytest

from kaflow_engine.connectors.http import asking, client
from kaflow_engine.connectors.http.asking import in_flight
from kaflow_engine.connectors.http.client import Endpoint, Later, NotTaken, post, send
from kaflow_engine.connectors.http.errors import HttpAway, HttpUnfit
from kaflow_engine.masking import remember
from tests.receiver import Answer, Receiver, running_receiver

BROKEN = {"Content-Encoding": "gzip"}
"""The header of a body that is not what it says."""


@pytest.fixture
def receiver(monkeypatch: pytest.MonkeyPatch) -> Iterator[Receiver]:
    monkeypatch.setattr(client, "_PAUSES", (0.0, 0.0))
    with running_receiver() as found:
        yield found


def answered(receiver: Receiver, answer: Answer) -> Endpoint:
    receiver.answer = lambda request: answer
    return Endpoint(title="it", remedy="correct it", url=receiver.url, headers={}, timeout=5.0)


def test_a_server_in_trouble_is_asked_again_whatever_its_body_is(receiver: Receiver) -> None:
    endpoint = answered(receiver, Answer(502, "no gzip", BROKEN))
    with pytest.raises(Later, match="answers 502"):
        post(endpoint, b"{}", "k")
    with pytest.raises(HttpAway, match="answers 502"):
        send(endpoint, b"{}", "k")


def test_a_login_is_wrong_whatever_the_body_is(receiver: Receiver) -> None:
    endpoint = answered(receiver, Answer(401, "no gzip", BROKEN))
    with pytest.raises(HttpUnfit, match="answers 401"):
        post(endpoint, b"{}", "k")


def test_a_body_that_is_not_needed_may_be_broken(receiver: Receiver) -> None:
    endpoint = answered(receiver, Answer(200, "no gzip", BROKEN))
    assert send(endpoint, b"{}", "k") is None
    assert len(receiver.requests) == 1
    found = post(endpoint, b"{}", "k")
    assert isinstance(found, NotTaken)
    assert found.error == "InvalidAnswer"


def test_a_refusal_stays_one_where_its_body_is_broken(receiver: Receiver) -> None:
    endpoint = answered(receiver, Answer(422, "no gzip", BROKEN))
    assert post(endpoint, b"{}", "k") == NotTaken("HTTP 422", "the server answers 422")


def test_no_more_of_a_body_is_read_than_there_is_room_for(
    receiver: Receiver, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(client, "_MOST_BYTES", 1000)
    endpoint = answered(receiver, Answer(200, "x" * 1000))
    assert post(endpoint, b"{}", "k") == b"x" * 1000
    endpoint = answered(receiver, Answer(200, "x" * 1001))
    assert post(endpoint, b"{}", "k") == NotTaken(
        "WrongAnswer", "the answer has more than 1,000 bytes"
    )
    assert send(endpoint, b"{}", "k") is None
    endpoint = answered(receiver, Answer(422, "x" * 1001))
    assert post(endpoint, b"{}", "k") == NotTaken("HTTP 422", "the server answers 422")


def test_a_secret_across_the_end_of_what_is_shown_is_masked(receiver: Receiver) -> None:
    secret = "across-the-end-5571"
    remember([secret])
    endpoint = answered(receiver, Answer(422, f"{'x' * 190}{secret}"))
    assert post(endpoint, b"{}", "k") == NotTaken("HTTP 422", f"{'x' * 190}***")


def test_what_follows_from_a_failure_does_not_hide_it(monkeypatch: pytest.MonkeyPatch) -> None:
    class Slow(Event):
        def set(self) -> None:
            if not self.is_set():
                super().set()
                time.sleep(0.2)  # whoever waits for it goes first

    monkeypatch.setattr(asking, "Event", Slow)
    waiting = Event()

    def asks(number: int, stop: Event) -> int:
        if number == 0:
            waiting.wait()
            raise HttpUnfit("the login is wrong")
        waiting.set()
        stop.wait()
        raise HttpAway("there was no time left")

    with pytest.raises(HttpUnfit, match="the login is wrong"):
        list(in_flight(asks, 2, 2))
