"""The receiver of websocket sources, against a real server that does what servers do."""

import json
import socket
import threading
from collections.abc import Callable, Generator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any, cast

import pytest
from websockets.exceptions import ConnectionClosed
from websockets.http11 import Request
from websockets.server import ServerProtocol
from websockets.sync.server import Server, ServerConnection, serve

from kaflow_engine.connectors.journal import sessions
from kaflow_engine.connectors.journal.journal import Journal
from kaflow_engine.connectors.journal.receivers import receiving
from kaflow_engine.errors import KaflowError, StateError
from kaflow_engine.flow.sources import ValueParams, WebsocketParams
from kaflow_engine.testing.services.child import free_ports
from tests.engine.connectors.receivers_here import journal, plan, source, until, values

pytestmark = pytest.mark.slow

SECRET = "never to be printed"
SECRETS = {"feed": SECRET}


def params(port: int) -> WebsocketParams:
    return WebsocketParams(
        url=f"ws://127.0.0.1:{port}/feed",
        headers=(ValueParams(name="Authorization", text="Bearer ", secret="feed"),),
        parameters=(ValueParams(name="of", text="a b", secret=None),),
        send=(
            ValueParams(text='{"subscribe":"trades"}', secret=None),
            ValueParams(text="", secret="feed"),
        ),
        max_bytes=1_000,
        max_backlog=1_000_000,
        ping=20_000,
    )


@contextmanager
def serving(
    handler: Callable[[ServerConnection], None], port: int = 0, **options: Any
) -> Generator[tuple[Server, int]]:
    with serve(handler, "127.0.0.1", port, **options) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        try:
            yield server, server.socket.getsockname()[1]
        finally:
            server.shutdown()
            thread.join()


def stay(connection: ServerConnection) -> None:
    """Answer pings until the other side goes."""
    try:
        while True:
            connection.recv()
    except ConnectionClosed:
        return


def record(n: int) -> str:
    return json.dumps({"n": n, "text": "ä" * (n % 50)})


def in_fragments(connection: ServerConnection, text: str, size: int) -> None:
    connection.send(text[at : at + size] for at in range(0, len(text), size))


def test_messages_are_whole_and_in_their_order(tmp_path: Path) -> None:
    asked: list[object] = []

    def handler(connection: ServerConnection) -> None:
        assert connection.request is not None
        asked.append((connection.request.path, connection.request.headers["Authorization"]))
        asked.extend(connection.recv() for _ in range(2))
        for n in range(300):
            if n % 3:
                in_fragments(connection, record(n), 1 + n % 7)
            else:
                connection.send(record(n).encode() if n % 2 else record(n))
        stay(connection)

    with serving(handler) as (_, port), receiving(plan(s=params(port)), tmp_path, SECRETS, 10):
        until(lambda: source(tmp_path).latest() == {0: 300})
    assert asked == [
        ("/feed?of=a+b", f"Bearer {SECRET}"),
        '{"subscribe":"trades"}',
        SECRET,
    ]
    assert values(tmp_path) == [json.loads(record(n)) for n in range(300)]


def test_a_connection_that_breaks_is_opened_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sessions, "FIRST_PAUSE_S", 0.01)
    numbers = iter(range(1_000_000))
    connects: list[int] = []

    def handler(connection: ServerConnection) -> None:
        connects.append(first := next(numbers))
        connection.send(record(first))
        match len(connects) % 3:
            case 0:  # within a message
                connection.send(iter_that_breaks(connection))
            case 1:
                connection.close(1012, "restarting")
            case _:
                connection.socket.close()

    def iter_that_breaks(connection: ServerConnection) -> Generator[str]:
        yield '{"n": '
        yield "1"
        connection.socket.close()
        raise ConnectionResetError

    with serving(handler) as (_, port), receiving(plan(s=params(port)), tmp_path, SECRETS, 30):
        until(lambda: len(connects) > 6)
    found = [each["n"] for each in values(tmp_path)]
    assert found == sorted(set(found))
    assert set(connects[:-1:3]) <= set(found)  # what was sent before an orderly end is there


def test_a_server_that_is_not_there_yet(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sessions, "FIRST_PAUSE_S", 0.01)
    (port,) = free_ports(1)

    def handler(connection: ServerConnection) -> None:
        connection.send(record(1))
        stay(connection)

    with receiving(plan(s=params(port)), tmp_path, SECRETS, 30):
        assert source(tmp_path).latest() == {0: 0}
        with serving(handler, port):
            until(lambda: source(tmp_path).latest() == {0: 1})


def test_a_pipeline_that_is_behind_reads_no_further(tmp_path: Path) -> None:
    sent = threading.Semaphore(0)

    def handler(connection: ServerConnection) -> None:
        try:
            for _ in range(40_000):
                connection.send("7" * 900)
                sent.release()
        except ConnectionClosed:
            return

    few = replace(params(0), max_backlog=10)
    with serving(handler, compression=None) as (_, port):
        few = replace(few, url=f"ws://127.0.0.1:{port}/")
        with receiving(plan(s=few), tmp_path, SECRETS, 10):
            until(lambda: journal(tmp_path).backlog >= 10)
            taken = journal(tmp_path).end
            while sent.acquire(timeout=0.5):  # what fits into buffers on the way
                pass
            assert journal(tmp_path).end == taken
            source(tmp_path).forget({0: taken}, 0)
            until(lambda: journal(tmp_path).end > taken)


def test_a_disk_that_is_full_for_a_while(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sessions, "FIRST_PAUSE_S", 0.01)
    connects, tried, append = [], [], Journal.append

    def handler(connection: ServerConnection) -> None:
        connects.append(1)
        for n in range(50):
            connection.send(record(n))
        stay(connection)

    def full(journal: Journal, *about: Any) -> int:
        tried.append(1)
        if len(tried) < 4:
            raise StateError("no space left on device")
        return append(journal, *about)

    monkeypatch.setattr(Journal, "append", full)
    with serving(handler) as (_, port), receiving(plan(s=params(port)), tmp_path, SECRETS, 10):
        until(lambda: source(tmp_path).latest() == {0: 50})
    assert len(connects) == 1
    assert [each["n"] for each in values(tmp_path)] == list(range(50))


def test_a_server_that_shows_no_life(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sessions, "FIRST_PAUSE_S", 0.01)
    accepted: list[socket.socket] = []

    def silent(listener: socket.socket) -> None:
        for _ in range(2):
            accepted.append(listener.accept()[0])
            protocol = ServerProtocol()
            while not (asked := protocol.events_received()):
                protocol.receive_data(accepted[-1].recv(65_536))
            protocol.send_response(protocol.accept(cast(Request, asked[0])))
            if len(accepted) > 1:
                protocol.send_text(record(1).encode())
            accepted[-1].sendall(b"".join(protocol.data_to_send()))

    with socket.create_server(("127.0.0.1", 0)) as listener:
        hurried = replace(params(listener.getsockname()[1]), ping=300, send=())
        thread = threading.Thread(target=silent, args=(listener,))
        thread.start()
        with receiving(plan(s=hurried), tmp_path, SECRETS, 30):
            until(lambda: source(tmp_path).latest() == {0: 1})
        thread.join()
        for each in accepted:
            each.close()


def too_large(connection: ServerConnection) -> None:
    connection.send(record(1))
    connection.send("7" * 1_001)
    stay(connection)


def refused(connection: ServerConnection) -> None:
    raise AssertionError


@pytest.mark.parametrize(
    ("handler", "status", "kept", "said"),
    [
        (
            too_large,
            None,
            1,
            "websocket ws://127.0.0.1:PORT/feed sent a message of more than 1,000 bytes\n"
            "  hint: raise 'max_bytes' of the source; what it sends until then is lost",
        ),
        (
            refused,
            403,
            0,
            "websocket ws://127.0.0.1:PORT/feed answers 403\n"
            "  hint: correct 'url', 'headers' or 'parameters' of the source",
        ),
        (
            refused,
            302,
            0,
            "websocket ws://127.0.0.1:PORT/feed answers 302\n"
            "  hint: correct 'url', 'headers' or 'parameters' of the source",
        ),
        (
            refused,
            503,
            0,
            "source 's' gave nothing for 0.2 s: websocket ws://127.0.0.1:PORT/feed answers 503\n"
            "  hint: start the pipeline again when it is back, or raise 'retry_deadline'",
        ),
    ],
    ids=["too large", "refused", "elsewhere", "away"],
)
def test_what_cannot_heal_ends_the_pipeline(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    handler: Callable[[ServerConnection], None],
    status: int | None,
    kept: int,
    said: str,
) -> None:
    monkeypatch.setattr(sessions, "FIRST_PAUSE_S", 0.01)

    def answer(connection: ServerConnection, request: object) -> Any:
        if status is None:
            return None
        response = connection.respond(status, "no")
        response.headers["Location"] = "ws://127.0.0.1:9/elsewhere"
        return response

    with (
        serving(handler, process_request=answer) as (_, port),
        receiving(plan(s=params(port)), tmp_path, SECRETS, 0.2),
    ):
        until(lambda: journal(tmp_path).failure is not None)
        with pytest.raises(KaflowError) as raised:
            source(tmp_path).latest()
    assert str(raised.value) == said.replace("PORT", str(port))
    assert raised.value.outage in ("stop", "bad settings")
    assert source(tmp_path).latest() == {0: kept}
