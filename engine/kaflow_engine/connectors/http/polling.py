"""Polls URLs, and writes down the records of their answers that are new."""

import time
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from datetime import UTC, datetime
from math import inf
from urllib.parse import urljoin, urlsplit

import httpx

from kaflow_engine.connectors.http.body import BodyTooLarge, read_body
from kaflow_engine.connectors.http.client import keep_quiet
from kaflow_engine.connectors.http.errors import is_later
from kaflow_engine.connectors.http.json_values import JsonValue, items, parsed, value_at
from kaflow_engine.connectors.http.new_records import Known, new_records
from kaflow_engine.connectors.http.retry_after import seconds_asked
from kaflow_engine.connectors.journal.journal import Message
from kaflow_engine.connectors.journal.receivers import Inlet
from kaflow_engine.connectors.journal.sessions import AskedToWait, Line, in_threads
from kaflow_engine.errors import SourceAway, SourceUnfit
from kaflow_engine.flow.sources import HttpParams, with_secrets
from kaflow_engine.model.sources.addresses import NEXT_IN_HEADER

_PAGE_TRIES = 4
"""How often a page is asked for before the poll begins again; its address may hold no longer."""


class PolledUrls:
    """Asks URLs; each source in its interval."""

    def receiving(self, inlets: Sequence[Inlet]) -> AbstractContextManager[None]:
        """Ask to the end of the block."""
        return in_threads(inlets, poll)


def poll(line: Line) -> None:
    """Ask again and again; the records of one poll, all its pages, are written down together.

    Raises:
        SourceAway: There is no answer, or one that asks for another try.
        SourceUnfit: The answer would be the same again, or is not what the source says.
        StateError: Records could not be written down.
    """
    params: HttpParams = line.inlet.params
    headers = with_secrets(params.headers, line.inlet.secrets)
    known = Known.of(line.inlet.journal.note, params.cursor)
    keep_quiet()
    with httpx.Client(timeout=params.timeout / 1000, headers=headers) as client:
        while line.await_room():
            began = time.monotonic()
            found = [record for page in _pages(line, client, known) for record in page]
            if line.ends:
                return
            new, known = new_records(found, known)
            if new:
                messages = [Message(value=each.text.encode()) for each in new]
                line.write(messages, known.note)
            line.pause(began + params.interval / 1000 - time.monotonic())


@dataclass
class _Answer:
    """What is left of an answer once it was read to its end."""

    text: str
    links: dict[str, str]
    size: int


def _pages(line: Line, client: httpx.Client, known: Known) -> Iterator[list[JsonValue]]:
    params: HttpParams = line.inlet.params
    url: str | None = str(httpx.URL(params.url).copy_merge_params(_asked(line, known)))
    room = params.max_bytes
    for _ in range(params.max_pages):
        if url is None or line.ends:
            return
        answer = _page(line, client, url, room)
        room -= answer.size
        if answer.text:
            yield _records(params, answer.text)
        url = _next(params, url, answer)
    if url is not None:
        raise SourceUnfit(
            f"one poll of {params.url} has more than {params.max_pages} pages",
            hint="raise 'max_pages' of the source, or ask for less in one poll",
        )


def _asked(line: Line, known: Known) -> dict[str, str]:
    params: HttpParams = line.inlet.params
    asked = with_secrets(params.parameters, line.inlet.secrets)
    if params.cursor is not None:
        at = params.cursor.start if known.cursor is None else known.cursor
        asked |= {} if at is None else {params.cursor.parameter: at}
    return asked


def _page(line: Line, client: httpx.Client, url: str, room: int) -> _Answer:
    """Return a page, tried by itself: a poll of many pages would hardly end if each failure lost
    those before it."""
    for left in reversed(range(_PAGE_TRIES)):
        try:
            answer = _answer(line.inlet, client, url, room)
        except SourceAway as error:
            if not left or not line.has_paused(error) or line.ends:
                raise
        else:
            line.patience.worked()
            return answer
    raise AssertionError


def _answer(inlet: Inlet, client: httpx.Client, url: str, room: int) -> _Answer:
    params: HttpParams = inlet.params
    try:
        with client.stream("GET", url) as answer:
            inlet.count("receiver_requests", status=str(answer.status_code))
            _check_status(params, answer)
            body = read_body(answer, room, until=inf)
            links = {name or "": each["url"] for name, each in answer.links.items()}
    except BodyTooLarge as error:
        raise SourceUnfit(
            f"one poll of {params.url} has more than {params.max_bytes:,} bytes",
            hint="raise 'max_bytes' of the source, or ask for less in one poll",
        ) from error
    except httpx.TimeoutException as error:
        within = f"{params.timeout / 1000:g} s"
        raise SourceAway(f"{params.url} did not answer in {within}") from error
    except httpx.DecodingError as error:
        raise SourceAway(f"{params.url} sent an answer that cannot be unpacked") from error
    except httpx.TransportError as error:
        kind = type(error).__name__
        raise SourceAway(f"{params.url} cannot be reached: {kind}") from error
    try:
        return _Answer(parsed(body) if body else "", links, len(body))
    except ValueError as error:
        raise SourceAway(f"{params.url} sent an answer that is no JSON") from error


def _check_status(params: HttpParams, answer: httpx.Response) -> None:
    status = answer.status_code
    if status // 100 == 2:
        return
    if is_later(status):
        asked = seconds_asked(answer.headers.get("Retry-After"), datetime.now(UTC))
        raise AskedToWait(f"{params.url} answers {status}", asked)
    raise SourceUnfit(
        f"{params.url} answers {status}",
        hint="correct 'url', 'headers' or 'parameters' of the source",
    )


def _records(params: HttpParams, text: str) -> list[JsonValue]:
    found = value_at(text, params.records)
    where = f"'{params.records}'" if params.records else "the answer"
    if found is None:
        raise SourceUnfit(
            f"an answer of {params.url} has no {where}",
            hint="correct 'records' of the source: where in an answer they are, as in data.items",
        )
    match found.value:
        case None:
            return []
        case list():
            return [*items(found)]
        case dict():
            return [found]
        case _:
            raise SourceUnfit(
                f"{where} of {params.url} is neither a list nor an object",
                hint="correct 'records' of the source: where in an answer they are",
            )


def _next(params: HttpParams, url: str, answer: _Answer) -> str | None:
    """Return the address of the next page; None: there is none."""
    if params.next is None:
        return None
    if params.next == NEXT_IN_HEADER:
        found: object = answer.links.get("next")
    else:
        said = value_at(answer.text, params.next) if answer.text else None
        found = None if said is None else said.value
    if found is None or found == "":
        return None
    following = urljoin(url, found) if isinstance(found, str) else ""
    if _origin(following) != _origin(url):  # headers with secrets would go along
        raise SourceUnfit(
            f"the next page of {params.url} is no address of the same server",
            hint="correct 'next' of the source: where in an answer the address of its next page is",
        )
    return following


def _origin(url: str) -> tuple[str, str]:
    parts = urlsplit(url)
    return parts.scheme, parts.netloc
