"""A bounded HTTP server: one thread, limits per connection, no client can block it."""

import asyncio
import logging
import socket
from collections.abc import Generator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from http import HTTPStatus
from threading import Event, Thread
from typing import Any

import h11

from kaflow_engine.telemetry.site import Answer, Limits, Request, Site, Stream

LOGGER = logging.getLogger("kaflow.telemetry")

_LARGEST_REQUEST = 16_384
_ACCEPTED = 32
"""Connections that are accepted at a turn of the loop. A request is read within four turns of its
connection, so that with more connections than these it is never the oldest that gives way."""
_WAITING = 1024
"""Connections that the system keeps until they are accepted."""


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
        self._streams: set[_Connection] = set()

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
        self._streams.discard(connection)

    def asked(self, connection: "_Connection", request: Request) -> None:
        self._asking.pop(connection, None)
        found = self._site.at_once(request)
        stream = self._site.stream(request) if found is None else None
        if found is not None:
            connection.send(found)
        elif stream is not None:
            if len(self._streams) >= self.limits.streams:
                connection.send(self._site.busy())
            else:
                self._streams.add(connection)
                connection.send_stream(stream)
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
        self._stream: Stream | None = None
        self._room = Event()
        self._room.set()
        self._is_head = False

    def connection_made(self, transport: Any) -> None:
        self._transport = transport
        self._end_within(self._port.limits.asking_s)
        self._port.opened(self)

    def data_received(self, data: bytes) -> None:
        if self._stream is not None:
            return  # what is sent behind a request is not read
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

    def eof_received(self) -> bool | None:
        return None  # the transport closes, and what goes on ends

    def pause_writing(self) -> None:
        self._room.clear()

    def resume_writing(self) -> None:
        self._room.set()

    def connection_lost(self, exc: Exception | None) -> None:
        self._port.closed(self)
        self._room.set()
        if self._stream is not None:
            self._stream.close()
            self._stream = None
        if self._deadline is not None:
            self._deadline.cancel()
        if self._page is not None:
            self._page.cancel()

    def await_page(self, page: "asyncio.Future[Answer]") -> None:
        self._page = page
        page.add_done_callback(self._made)

    def send(self, answer: Answer) -> None:
        length = ("Content-Length", str(len(answer.body)))
        transport = self._begin(answer.code, answer.kind, length, *answer.headers)
        if not self._is_head:
            transport.write(answer.body)
        transport.close()  # when it is sent

    def send_stream(self, stream: Stream) -> None:
        self._stream = stream
        if self._deadline is not None:
            self._deadline.cancel()
        self._begin(HTTPStatus.OK, stream.kind, ("Transfer-Encoding", "chunked")).resume_reading()
        loop = asyncio.get_running_loop()
        Thread(
            target=self._feed, args=(stream, loop), name="kaflow-http-stream", daemon=True
        ).start()

    def _feed(self, stream: Stream, loop: asyncio.AbstractEventLoop) -> None:
        """Send pieces as they come, in a thread; one who does not take them is left."""
        ends = self._end
        try:
            for piece in stream:
                if self._stream is None:
                    break  # no one takes it any more
                if not self._room.wait(self._port.limits.answering_s):
                    ends = self.cut
                    break
                loop.call_soon_threadsafe(self._write, h11.Data(data=piece))
        except Exception:
            LOGGER.warning("an answer was broken off", exc_info=True)
            ends = self.cut
        finally:
            stream.close()
            with suppress(RuntimeError):  # the loop is gone, and all connections with it
                loop.call_soon_threadsafe(ends)

    def _write(self, event: h11.Data | h11.EndOfMessage) -> None:
        if self._stream is not None and self._transport is not None:
            self._transport.write(self._http.send(event) or b"")

    def _end(self) -> None:
        self._write(h11.EndOfMessage())
        if self._transport is not None:
            self._transport.close()

    def _begin(self, code: HTTPStatus, kind: str, *more: tuple[str, str]) -> asyncio.Transport:
        """Send the head of an answer."""
        assert self._transport is not None
        headers = [
            ("Server", "kaflow"),
            ("Content-Type", kind),
            ("Cache-Control", "no-store"),
            ("X-Content-Type-Options", "nosniff"),
            ("Connection", "close"),
            *more,
        ]
        head = h11.Response(status_code=code, headers=headers, reason=code.phrase)
        self._transport.write(self._http.send(head) or b"")
        return self._transport

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
