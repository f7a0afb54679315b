"""A bounded HTTP server: one thread, limits per connection, no client can block it."""

import asyncio
import logging
import socket
from collections.abc import Generator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from http import HTTPStatus
from threading import Thread
from typing import Any, Protocol

import h11

LOGGER = logging.getLogger("kaflow.telemetry")

_LARGEST_REQUEST = 16_384
_ACCEPTED = 32
"""Connections that are accepted at a turn of the loop. A request is read within four turns of its
connection, so that with more connections than these it is never the oldest that gives way."""
_WAITING = 1024
"""Connections that the system keeps until they are accepted."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """What connections may take up."""

    connections: int = 256
    """Most of them; one more takes the place of the oldest that has not asked for anything yet."""
    pages: int = 8
    """Most pages that are made or sent at a time; who asks for one more is refused."""
    asking_s: float = 5.0
    """After which a connection without a whole request is closed."""
    answering_s: float = 10.0
    """After which one that does not take its answer is closed."""


@dataclass(frozen=True, slots=True)
class Request:
    """What is asked."""

    method: str
    path: str
    authorization: str | None


@dataclass(frozen=True, slots=True)
class Answer:
    """What is sent back."""

    code: HTTPStatus
    kind: str
    body: bytes
    headers: tuple[tuple[str, str], ...] = ()


class Site(Protocol):
    """What is asked for."""

    def at_once(self, request: Request) -> Answer | None:
        """Return an answer that costs next to nothing and is short; None: a page must be made."""
        ...

    def page(self, request: Request) -> Answer:
        """Make a page, in a thread of its own."""
        ...

    def busy(self) -> Answer:
        """Return what those get for whom no page is made now; it is short."""
        ...


@contextmanager
def serving(listener: socket.socket, site: Site, limits: Limits) -> Generator[None]:
    """Serve until the block ends; closes the socket."""
    loop, stop = asyncio.new_event_loop(), asyncio.Event()
    loop.set_exception_handler(_not_our_fault)
    pages = ThreadPoolExecutor(1, "kaflow-http-pages")
    port = _Port(site, limits, pages)
    thread = Thread(
        target=loop.run_until_complete,
        args=(port.run(listener, stop),),
        name="kaflow-http",
        daemon=True,
    )
    thread.start()
    try:
        yield
    finally:
        loop.call_soon_threadsafe(stop.set)
        thread.join()
        loop.close()
        pages.shutdown(wait=False, cancel_futures=True)


class _Port:
    """The connections, and what is being made for them; used by the thread of the loop alone."""

    def __init__(self, site: Site, limits: Limits, threads: ThreadPoolExecutor) -> None:
        self.limits = limits
        self._site, self._threads = site, threads
        self._open: set[_Connection] = set()
        self._asking: dict[_Connection, None] = {}  # the oldest first
        self._pages: set[_Connection] = set()

    async def run(self, listener: socket.socket, stop: asyncio.Event) -> None:
        loop = asyncio.get_running_loop()
        server = await loop.create_server(
            lambda: _Connection(self), sock=listener, backlog=_ACCEPTED
        )
        listener.listen(_WAITING)  # asyncio has one number for both
        await stop.wait()
        server.close()
        for connection in [*self._open]:
            connection.cut()
        while self._open:
            await asyncio.sleep(0)

    def opened(self, connection: "_Connection") -> None:
        self._open.add(connection)
        self._asking[connection] = None
        if len(self._open) > self.limits.connections:
            next(iter(self._asking)).cut()

    def closed(self, connection: "_Connection") -> None:
        self._open.discard(connection)
        self._asking.pop(connection, None)
        self._pages.discard(connection)

    def asked(self, connection: "_Connection", request: Request) -> None:
        self._asking.pop(connection, None)
        found = self._site.at_once(request)
        if found is not None:
            connection.send(found)
        elif len(self._pages) >= self.limits.pages:
            connection.send(self._site.busy())
        else:
            self._pages.add(connection)
            loop = asyncio.get_running_loop()
            connection.await_page(loop.run_in_executor(self._threads, self._site.page, request))


class _Connection(asyncio.Protocol):
    """One request and its answer; then it is closed."""

    def __init__(self, port: _Port) -> None:
        self._port = port
        self._http = h11.Connection(h11.SERVER, max_incomplete_event_size=_LARGEST_REQUEST)
        self._transport: asyncio.Transport | None = None
        self._deadline: asyncio.TimerHandle | None = None
        self._page: asyncio.Future[Answer] | None = None
        self._is_head = False

    def connection_made(self, transport: Any) -> None:
        self._transport = transport
        self._end_within(self._port.limits.asking_s)
        self._port.opened(self)

    def data_received(self, data: bytes) -> None:
        try:
            self._http.receive_data(data)
            event = self._http.next_event()
        except h11.RemoteProtocolError as error:
            self.send(Answer(HTTPStatus(error.error_status_hint), "text/plain", b""))
            return
        if isinstance(event, h11.Request):
            assert self._transport is not None
            self._transport.pause_reading()
            self._end_within(self._port.limits.answering_s)
            self._is_head = event.method == b"HEAD"
            found = dict(event.headers).get(b"authorization")
            authorization = None if found is None else found.decode(errors="replace")
            path = event.target.decode("latin-1")
            self._port.asked(self, Request(event.method.decode(), path, authorization))

    def connection_lost(self, exc: Exception | None) -> None:
        self._port.closed(self)
        if self._deadline is not None:
            self._deadline.cancel()
        if self._page is not None:
            self._page.cancel()

    def await_page(self, page: "asyncio.Future[Answer]") -> None:
        self._page = page
        page.add_done_callback(self._made)

    def send(self, answer: Answer) -> None:
        assert self._transport is not None
        headers = [
            ("Server", "kaflow"),
            ("Content-Type", answer.kind),
            ("Content-Length", str(len(answer.body))),
            ("Cache-Control", "no-store"),
            ("X-Content-Type-Options", "nosniff"),
            ("Connection", "close"),
            *answer.headers,
        ]
        reason = answer.code.phrase
        head = h11.Response(status_code=answer.code, headers=headers, reason=reason)
        self._transport.write(self._http.send(head) or b"")
        if not self._is_head:
            self._transport.write(answer.body)
        self._transport.close()  # when it is sent

    def cut(self) -> None:
        if self._transport is not None:
            self._transport.abort()

    def _made(self, page: "asyncio.Future[Answer]") -> None:
        if page.cancelled():
            return
        if error := page.exception():
            LOGGER.warning("a page could not be made", exc_info=error)
            self.send(Answer(HTTPStatus.INTERNAL_SERVER_ERROR, "text/plain", b""))
        else:
            self.send(page.result())

    def _end_within(self, seconds: float) -> None:
        if self._deadline is not None:
            self._deadline.cancel()
        self._deadline = asyncio.get_running_loop().call_later(seconds, self.cut)


def _not_our_fault(loop: asyncio.AbstractEventLoop, about: dict[str, Any]) -> None:
    LOGGER.debug("a request ended early: %s", about.get("message"), exc_info=about.get("exception"))
