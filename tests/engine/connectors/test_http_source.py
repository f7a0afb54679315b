"""Sources that poll, against a real server: what it gives is written down once."""

from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from kaflow_engine.connectors.journal import sessions
from kaflow_engine.connectors.journal.receivers import receiving
from kaflow_engine.errors import KaflowError
from kaflow_engine.flow.sources import CursorParams, HttpParams, ValueParams
from tests.engine.connectors.polled_server import Answer, Asked, answering
from tests.engine.connectors.receivers_here import journal, plan, source, until, values

pytestmark = pytest.mark.slow

SECRET = "never to be printed"
SECRETS = {"api": SECRET}
PARAMS = HttpParams(
    url="http://127.0.0.1:9/orders?kind=new",
    headers=(ValueParams(name="Authorization", text="Bearer ", secret="api"),),
    parameters=(ValueParams(name="token", text="", secret="api"),),
    interval=10,
    records="data.items",
    cursor=CursorParams(field="id", parameter="after", start="0"),
    next=None,
    max_pages=5,
    max_bytes=10_000,
    max_backlog=1_000,
    timeout=2_000,
)


@pytest.fixture(autouse=True)
def _hurried(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sessions, "FIRST_PAUSE_S", 0.01)


def listed(records: object) -> Answer:
    return Answer({"data": {"items": records}})


class Orders:
    """Orders of which each poll sees a few more."""

    def __init__(self, inclusive: bool) -> None:
        self.asked: list[Asked] = []
        self._from = 0 if inclusive else 1

    def __call__(self, asked: Asked) -> Answer:
        self.asked.append(asked)
        after = int(asked.query["after"])
        return listed([{"id": n} for n in range(after + self._from, len(self.asked) * 3)])


@pytest.mark.parametrize("inclusive", [False, True])
def test_a_cursor_goes_on_where_it_was(tmp_path: Path, inclusive: bool) -> None:
    orders = Orders(inclusive)
    with answering(orders) as url:
        params = replace(PARAMS, url=f"{url}/orders?kind=new")
        for _ in range(3):  # in one process, and in the next
            before = len(orders.asked)
            with receiving(plan(s=params), tmp_path, SECRETS, 10):
                until(lambda before=before: len(orders.asked) > before + 3)
    found = [each["id"] for each in values(tmp_path)]
    assert found == list(range(0 if inclusive else 1, len(found) + (0 if inclusive else 1)))
    first = orders.asked[0]
    assert (first.path, first.query) == (
        "/orders",
        {"kind": "new", "token": SECRET, "after": "0"},
    )
    assert first.headers["Authorization"] == f"Bearer {SECRET}"


def test_without_a_cursor_records_come_when_they_change(tmp_path: Path) -> None:
    answers = [[1, 2], [1, 2], [{"n": 1.50}, 2], [2], [3]]
    polls = iter(range(1_000_000))

    def status(asked: Asked) -> Answer:
        return Answer(answers[min(next(polls), len(answers) - 1)])

    with answering(status) as url:
        params = replace(PARAMS, url=url, records=None, cursor=None)
        with receiving(plan(s=params), tmp_path, SECRETS, 10):
            until(lambda: source(tmp_path).latest() == {0: 4})
        with receiving(plan(s=params), tmp_path, SECRETS, 10):
            at = next(polls)
            until(lambda: next(polls) > at + 5)
    assert values(tmp_path) == [1, 2, {"n": 1.5}, 3]


@pytest.mark.parametrize("told", ["next", "links.next", "header:Link"])
def test_the_pages_of_a_poll_are_written_together(tmp_path: Path, told: str) -> None:
    def page(asked: Asked) -> Answer:
        number = int(asked.query.get("page", 1))
        following = f"?page={number + 1}" if number < 4 else None
        said: dict[str, Any] = {"data": {"items": [{"id": 10 - number}]}}
        if told == "header:Link":
            link = f'<{following}>; rel="next"' if following else '<?page=1>; rel="first"'
            return Answer(said, headers={"Link": link})
        return Answer({**said, "next": following, "links": {"next": following}})

    with answering(page) as url:
        params = replace(PARAMS, url=url, next=told)
        with receiving(plan(s=params), tmp_path, SECRETS, 10):
            until(lambda: source(tmp_path).latest() != {0: 0})
    assert values(tmp_path) == [{"id": n} for n in (9, 8, 7, 6)]


TROUBLES = [
    Answer(b"{", 200),
    Answer({"data": {}}, breaks=True),
    Answer({}, 503),
    Answer({}, 429, {"Retry-After": "0"}),
    Answer({}, 408, {"Retry-After": "Thu, 01 Jan 2026 00:00:00 GMT"}),
    Answer(b"", 204),
    Answer({"data": {"items": None}}),
]


def test_what_may_heal_is_asked_again(tmp_path: Path) -> None:
    troubles: Iterator[Answer] = iter(TROUBLES)

    def answer(asked: Asked) -> Answer:
        return next(troubles, listed([{"id": 7}, {"id": 8}]))

    with answering(answer) as url:
        params = replace(PARAMS, url=url)
        with receiving(plan(s=params), tmp_path, SECRETS, 10):
            until(lambda: source(tmp_path).latest() == {0: 2})
    assert next(troubles, None) is None


@pytest.mark.parametrize(("failures", "firsts"), [(3, 1), (4, 2)])
def test_a_page_is_asked_for_again_by_itself(tmp_path: Path, failures: int, firsts: int) -> None:
    asked: list[int] = []

    def page(one: Asked) -> Answer:
        number = int(one.query.get("page", 1))
        asked.append(number)
        if number == 2 and asked.count(2) <= failures:
            return Answer({}, 503)
        following = f"?page={number + 1}" if number < 3 else None
        return Answer({"data": {"items": [{"id": number}]}, "next": following})

    with answering(page) as url:
        params = replace(PARAMS, url=url, next="next", interval=60_000)
        with receiving(plan(s=params), tmp_path, SECRETS, 60):
            until(lambda: source(tmp_path).latest() == {0: 3})
    assert [asked.count(number) for number in (1, 2, 3)] == [firsts, failures + 1, 1]


def test_a_server_that_asks_for_time_gets_it(tmp_path: Path) -> None:
    asked: list[Asked] = []

    def busy(one: Asked) -> Answer:
        asked.append(one)
        return Answer({}, 429, {"Retry-After": "3600"})

    with answering(busy) as url:
        params = replace(PARAMS, url=url)
        with receiving(plan(s=params), tmp_path, SECRETS, 0.05):
            until(lambda: len(asked) == 1)
            assert journal(tmp_path).failure is None
    assert len(asked) == 1


def test_a_pipeline_that_is_behind_is_not_asked_for_more(tmp_path: Path) -> None:
    orders = Orders(inclusive=False)
    with answering(orders) as url:
        params = replace(PARAMS, url=url, max_backlog=10)
        with receiving(plan(s=params), tmp_path, SECRETS, 10):
            until(lambda: journal(tmp_path).backlog >= 10)
            asked, taken = len(orders.asked), journal(tmp_path).end
            source(tmp_path).forget({0: taken}, 0)
            until(lambda: len(orders.asked) > asked)


UNFIT: list[tuple[dict[str, Any], Callable[[Asked], Answer], str]] = [
    (
        {},
        lambda asked: Answer({}, 401),
        "URL answers 401\n  hint: correct 'url', 'headers' or 'parameters' of the source",
    ),
    (
        {},
        lambda asked: Answer({}, 302, {"Location": "/other"}),
        "URL answers 302\n  hint: correct 'url', 'headers' or 'parameters' of the source",
    ),
    (
        {},
        lambda asked: Answer({"data": []}),
        "an answer of URL has no 'data.items'\n"
        "  hint: correct 'records' of the source: where in an answer they are, as in data.items",
    ),
    (
        {},
        lambda asked: listed(7),
        "'data.items' of URL is neither a list nor an object\n"
        "  hint: correct 'records' of the source: where in an answer they are",
    ),
    (
        {},
        lambda asked: listed([{"id": 1}, {"name": "b"}]),
        "a record has no 'id' that is a number or a text, and so no place among others\n"
        "  hint: name a field that each record has, or remove 'cursor'",
    ),
    (
        {"max_bytes": 30},
        lambda asked: listed([{"id": 1}, {"id": 2}]),
        "one poll of URL has more than 30 bytes\n"
        "  hint: raise 'max_bytes' of the source, or ask for less in one poll",
    ),
    (
        {"next": "next"},
        lambda asked: Answer({"data": {"items": []}, "next": "?again=1"}),
        "one poll of URL has more than 5 pages\n"
        "  hint: raise 'max_pages' of the source, or ask for less in one poll",
    ),
    (
        {"next": "next"},
        lambda asked: Answer({"data": {"items": []}, "next": "http://127.0.0.1:9/elsewhere"}),
        "the next page of URL is no address of the same server\n"
        "  hint: correct 'next' of the source: where in an answer the address of its next page is",
    ),
    (
        {},
        lambda asked: Answer({}, 500),
        "source 's' gave nothing for 0.05 s: URL answers 500\n"
        "  hint: start the pipeline again when it is back, or raise 'retry_deadline'",
    ),
]


@pytest.mark.parametrize(("changes", "answer", "said"), UNFIT, ids=[row[2][:40] for row in UNFIT])
def test_what_cannot_heal_ends_the_pipeline(
    tmp_path: Path, changes: dict[str, Any], answer: Callable[[Asked], Answer], said: str
) -> None:
    with answering(answer) as url:
        params = replace(PARAMS, url=url, **changes)
        with receiving(plan(s=params), tmp_path, SECRETS, 0.05):
            until(lambda: journal(tmp_path).failure is not None)
            with pytest.raises(KaflowError) as raised:
                source(tmp_path).latest()
        assert str(raised.value) == said.replace("URL", url)
    assert raised.value.outage in ("stop", "bad settings")
    assert values(tmp_path) == []
