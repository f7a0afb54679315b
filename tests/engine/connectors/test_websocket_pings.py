"""Whether the server of a websocket is there, which its answers to pings say, among messages."""

import json
import socket
import threading
from collections.abc import Callable, Generator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import cast

import pytest
from websockets.frames import Frame, Opcode
from websockets.http11 import Request
from websockets.server import ServerProtocol

from kaflow_engine.connectors.journal import sessions
from kaflow_engine.connectors.journal.receivers import receiving
from kaflow_engine.flow.sources import WebsocketParams
from tests.engine.connectors.receivers_here import journal, plan, source, until, values

pytestmark = pytest.mark.slow


def params(port: int, ping: int) -> WebsocketParams:
    return WebsocketParams(
        url=f"ws://127.0.0.1:{port}/feed",
        headers=(),
        parameters=(),
        send=(),
        max_bytes=8 << 20,
        max_backlog=1_000_000,
        ping=ping,
    )


@contextmanager
def by_hand(
    talk: Callable[[ServerProtocol, socket.socket], None], connects: list[socket.socket]
) -> Generator[int]:
    """Serve connections, one after the other, where frames may come in any order."""

    def serve_them(listener: socket.socket) -> None:
        while True:
            try:
                connects.append(listener.accept()[0])
            except OSError:
                return
            protocol = ServerProtocol()
            while not (asked := protocol.events_received()):
                protocol.receive_data(connects[-1].recv(65_536))
            protocol.send_response(protocol.accept(cast(Request, asked[0])))
            connects[-1].sendall(b"".join(protocol.data_to_send()))
            with suppress(OSError):
                talk(protocol, connects[-1])

    with socket.create_server(("127.0.0.1", 0)) as listener:
        thread = threading.Thread(target=serve_them, args=(listener,))
        thread.start()
        try:
            yield listener.getsockname()[1]
        finally:
            listener.shutdown(socket.SHUT_RDWR)
            for each in connects:
                with suppress(OSError):
                    each.shutdown(socket.SHUT_RDWR)
            thread.join()
            for each in connects:
                each.close()


def test_a_burst_before_the_answer_to_a_ping(tmp_path: Path) -> None:
    connects: list[socket.socket] = []
    messages = [{"n": n, "text": "7" * 900} for n in range(300)]  # more than is read ahead

    pings: list[Frame] = []

    def burst(protocol: ServerProtocol, to: socket.socket) -> None:
        sent = False
        while data := to.recv(65_536):
            protocol.receive_data(data)
            came = [cast(Frame, each) for each in protocol.events_received()]
            pings.extend(frame for frame in came if frame.opcode is Opcode.PING)
            answers = b"".join(protocol.data_to_send())
            if not sent:  # it was asked whether it is there
                sent = True
                for message in messages:
                    protocol.send_text(json.dumps(message).encode())
                answers = b"".join(protocol.data_to_send()) + answers
            to.sendall(answers)

    with by_hand(burst, connects) as port:
        with receiving(plan(s=params(port, ping=500)), tmp_path, {}, 30):
            until(lambda: source(tmp_path).latest() == {0: len(messages)})
            until(lambda: len(pings) > 2)  # none follows one that is not answered
            assert journal(tmp_path).failure is None
    assert len(connects) == 1
    assert values(tmp_path) == messages


def test_the_end_does_not_wait_for_an_answer(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sessions, "_LEAVES_S", 4.0)
    asked = threading.Event()

    def silent(protocol: ServerProtocol, to: socket.socket) -> None:
        while data := to.recv(65_536):
            protocol.receive_data(data)
            for each in protocol.events_received():
                match cast(Frame, each).opcode:
                    case Opcode.PING:
                        asked.set()
                    case _:
                        return to.close()

    with by_hand(silent, []) as port:
        with receiving(plan(s=params(port, ping=5_000)), tmp_path, {}, 30):
            assert asked.wait(30)
        assert not [each for each in threading.enumerate() if each.name == "kaflow-receives-s"]
