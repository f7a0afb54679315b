"""Connects to websockets, and writes down what their servers send."""

import threading
import time
from collections.abc import Generator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, suppress
from dataclasses import dataclass, field
from urllib.parse import urlencode

from websockets.exceptions import ConnectionClosed
from websockets.sync.client import ClientConnection, connect

from kaflow_engine.connectors.journal.journal import Message
from kaflow_engine.connectors.journal.receivers import Inlet
from kaflow_engine.connectors.journal.sessions import Line, in_threads
from kaflow_engine.connectors.websocket.errors import WebsocketAway, closed, not_open
from kaflow_engine.connectors.websocket.sockets import opened
from kaflow_engine.flow.sources import WebsocketParams, with_secrets

_LOOK_S = 0.2
"""How long to wait for a message before looking whether it all ends."""
_OPEN_S = 10.0
_CLOSE_S = 2.0
_STANDS_S = 5.0
"""A connection that stood so long was no failure, though nothing came."""
_MOST_MESSAGES = 1_000
_MOST_BYTES = 8 << 20
"""What is written down at once, at most."""
_QUEUE_BYTES = 64 << 20
"""What is received meanwhile, at most."""


class Websockets:
    """Takes messages; each source has a connection, which is opened again when it breaks."""

    def receiving(self, inlets: Sequence[Inlet]) -> AbstractContextManager[None]:
        """Take messages to the end of the block."""
        return in_threads(inlets, take)


def take(line: Line) -> None:
    """Take the messages of one connection.

    Raises:
        SourceAway: It broke, or could not be opened.
        SourceUnfit: The server does not let us in, or sends what is too large.
        StateError: Messages could not be written down.
    """
    params: WebsocketParams = line.inlet.params
    if not line.await_room():
        return
    with _connected(line.inlet, params) as connection:
        since = time.monotonic()
        try:
            _take(line, _Messages(connection, params.url, params.ping / 1000))
        except ConnectionClosed as error:
            if time.monotonic() - since > _STANDS_S:
                line.patience.worked()
            raise closed(params, error) from error


def _take(line: Line, messages: "_Messages") -> None:
    params: WebsocketParams = line.inlet.params
    with suppress(ConnectionClosed):  # what has come is taken first; then it is raised again
        for said in params.send:
            messages.connection.send(said.with_secret(line.inlet.secrets))
    while line.await_room():
        if found := messages.gathered():
            line.write_at_last(found)
        elif messages.silence_checked():
            line.patience.worked()
    for _ in range(_QUEUE_BYTES // _MOST_BYTES):  # all that was received; a busy server sends on
        if found := messages.gathered(0):
            line.write_at_last(found)


@dataclass
class _Messages:
    """The messages of a connection; the library joins fragments, and reads no further than a few
    frames ahead of us."""

    connection: ClientConnection
    url: str
    ping: float
    """Seconds."""
    _heard: float = field(default_factory=time.monotonic)
    _pong: threading.Event | None = None
    """Set once the server has answered; None: it is not asked."""
    _asked: float = 0.0

    def gathered(self, wait: float = _LOOK_S) -> list[Message]:
        """Return those that have come, or soon come: one sync of the disk serves many.

        Raises:
            ConnectionClosed: There are none, and no more come.
        """
        found: list[Message] = []
        size = 0
        try:
            while len(found) < _MOST_MESSAGES and size < _MOST_BYTES:
                value = self.connection.recv(0 if found else wait, decode=False)
                found.append(Message(value=value))
                size += len(value)
        except TimeoutError:
            pass
        except ConnectionClosed:
            if not found:
                raise
        if found:
            self._hear()
        return found

    def silence_checked(self) -> bool:
        """Ask, after a long silence, whether the server is there; return whether it has answered.

        It is asked here and not by the library, which would take a server for lost that waits for
        us: what we do not read, its answer to a ping included, we do not see. So we read on until
        the answer is there.

        Raises:
            WebsocketAway: It did not answer.
        """
        now = time.monotonic()
        if self._pong is None:
            if now - self._heard >= self.ping:
                self._pong, self._asked = self.connection.ping(), now
            return False
        if self._pong.is_set():
            self._hear()
            return True
        if now - self._asked >= self.ping:
            raise WebsocketAway(f"websocket {self.url} is silent, and answers no ping")
        return False

    def _hear(self) -> None:
        self._heard, self._pong = time.monotonic(), None


@contextmanager
def _connected(inlet: Inlet, params: WebsocketParams) -> Generator[ClientConnection]:
    try:
        connection = connect(
            _with_parameters(params, inlet.secrets),
            sock=opened(params.url, _OPEN_S),
            additional_headers=with_secrets(params.headers, inlet.secrets),
            open_timeout=_OPEN_S,
            close_timeout=_CLOSE_S,
            ping_interval=None,
            max_size=params.max_bytes,
            max_queue=max(16, min(_MOST_MESSAGES, _QUEUE_BYTES // params.max_bytes)),
        )
    except Exception as error:
        raise not_open(params, error) from error
    with connection:
        yield connection


def _with_parameters(params: WebsocketParams, secrets: Mapping[str, str]) -> str:
    if not params.parameters:
        return params.url
    asked = urlencode(with_secrets(params.parameters, secrets))
    return f"{params.url}{'&' if '?' in params.url else '?'}{asked}"
