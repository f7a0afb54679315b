"""What a Dagster that is away, refuses, or is none means; answers are as its schema has them."""

import json
import threading
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from kaflow_engine.connectors.dagster.client import Dagster, Switch
from kaflow_engine.connectors.dagster.requests import without_login
from kaflow_engine.connectors.dagster.streams import Stream
from kaflow_engine.errors import KaflowError, ModelError
from tests.receiver import Answer, Receiver, running_receiver

STREAM = Stream(
    name="a",
    front_end="Lenses processor",
    location="shop",
    repository="r",
    sensor="supervise__a",
    run="a",
    together=("a",),
)
EMPTY: dict[str, str] = {}
BROKEN = {"__typename": "PythonError", "message": "no such table\nand more"}


@pytest.fixture(scope="module")
def receiver() -> Iterator[Receiver]:
    with running_receiver() as found:
        yield found


def dagster(receiver: Receiver, status: int, body: object, timeout: float = 10.0) -> Dagster:
    text = body if isinstance(body, str) else json.dumps(body)
    receiver.answer = lambda _: Answer(status, text)
    return Dagster(receiver.url.replace("://", "://me:secret@"), timeout)


def data(field: str, found: object) -> dict[str, Any]:
    return {"data": {field: found}}


def said(ask: Callable[[], object], receiver: Receiver) -> str:
    with pytest.raises(KaflowError) as error:
        ask()
    assert "secret" not in str(error.value)
    return error.value.message.replace(receiver.url, "URL")


@pytest.mark.parametrize(
    ("status", "body", "expected"),
    [
        (200, "<html>", "what answers at URL is no Dagster"),
        (200, "[]", "what answers at URL is no Dagster"),
        (200, {"data": None}, "what answers at URL is no Dagster"),
        (200, {"data": EMPTY}, "what answers at URL is no Dagster"),
        (200, {"errors": "x"}, "what answers at URL is no Dagster"),
        (404, "gone", "what answers at URL is no Dagster"),
        (302, "", "what answers at URL is no Dagster"),
        (400, {"errors": [{"message": "Cannot query\nx"}]}, "does not understand: Cannot query"),
        (400, {"errors": [EMPTY]}, "does not understand: it does not say why"),
        (401, "", "Dagster at URL answers with HTTP 401"),
        (403, "", "Dagster at URL answers with HTTP 403"),
        (500, {"detail": "x"}, "Dagster at URL answers with HTTP 500"),
        (503, "<html>", "Dagster at URL answers with HTTP 503"),
    ],
)
def test_what_no_dagster_says(receiver: Receiver, status: int, body: object, expected: str) -> None:
    assert expected in said(dagster(receiver, status, body).streams, receiver)


def test_an_answer_that_takes_too_long(receiver: Receiver) -> None:
    patient = dagster(receiver, 200, "", timeout=0.2)
    later = receiver.answer

    given_up = threading.Event()

    def slow(request: Any) -> Answer:
        given_up.wait(60)
        return later(request)

    receiver.answer = slow
    assert said(patient.streams, receiver) == "Dagster at URL has not answered within 0.2 s"
    given_up.set()


REFUSALS: list[tuple[str, object, Callable[[Dagster], object], str]] = [
    # that runs are not known does not mean that there are none
    ("runsOrError", BROKEN, lambda d: d.runs(STREAM), "refuses: no such table"),
    ("repositoriesOrError", BROKEN, lambda d: d.reload(), "refuses: no such table"),
    ("sensorOrError", BROKEN, lambda d: d.switch(STREAM), "refuses: no such table"),
    (
        "sensorOrError",
        {"__typename": "SensorNotFoundError"},
        lambda d: d.switch(STREAM),
        "Dagster at URL has no sensor 'supervise__a'",
    ),
    (
        "startSensor",
        {"__typename": "UnauthorizedError", "message": ""},
        lambda d: d.switch_on(STREAM),
        "Dagster at URL refuses: UnauthorizedError",
    ),
    (
        "stopSensor",
        {"__typename": "UnauthorizedError"},
        lambda d: d.switch_off(Switch(id="s", on=True)),
        "Dagster at URL refuses: UnauthorizedError",
    ),
    (
        "reloadRepositoryLocation",
        {"__typename": "ReloadNotSupported", "message": "shop does not support reloading"},
        lambda d: d.reload("shop"),
        "Dagster at URL refuses: shop does not support reloading",
    ),
    (
        "reloadRepositoryLocation",
        {"__typename": "WorkspaceLocationEntry", "locationOrLoadError": BROKEN},
        lambda d: d.reload("shop"),
        "Dagster at URL cannot load code location 'shop': no such table",
    ),
]


@pytest.mark.parametrize(("field", "found", "ask", "expected"), REFUSALS)
def test_what_dagster_refuses(
    receiver: Receiver,
    field: str,
    found: object,
    ask: Callable[[Dagster], object],
    expected: str,
) -> None:
    one = dagster(receiver, 200, data(field, found))
    assert said(lambda: ask(one), receiver).endswith(expected)


@pytest.mark.parametrize(
    "url",
    [
        "me:secret@host:3000",
        "host:3000",
        "http://",
        "http://me:secret@host:port",
        "http://host?token=secret",
        "http://host/#secret",
        "file:///etc/passwd",
        "",
    ],
)
def test_a_url_that_is_none_is_not_shown(url: str) -> None:
    with pytest.raises(ModelError) as error:
        Dagster(url).streams()
    assert str(error.value) == (
        "the URL of Dagster is none\n"
        "  hint: it looks like http://127.0.0.1:3000; see --dagster and DAGSTER_URL"
    )


def test_a_login_is_not_shown() -> None:
    assert without_login("https://me:se@cret@host:3000/x/") == "https://host:3000/x"
