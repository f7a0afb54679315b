"""An HTTP server that takes requests, and answers as a test wants it to."""

import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import NamedTuple


class Request(NamedTuple):
    """What came."""

    path: str
    headers: Mapping[str, str]
    body: bytes


class Answer(NamedTuple):
    """What goes back."""

    status: int
    text: str = ""
    headers: Mapping[str, str] = {}


@dataclass
class Receiver:
    """Requests in the order in which they came, each with its answer."""

    url: str = ""
    answer: Callable[[Request], Answer] = lambda request: Answer(200)
    requests: list[Request] = field(default_factory=list[Request])
    taken: list[Request] = field(default_factory=list[Request])
    """Those that were answered with a status of success."""


@contextmanager
def running_receiver(port: int = 0) -> Iterator[Receiver]:
    """Serve on 127.0.0.1, on any free port unless one is given."""
    receiver = Receiver()

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
            request = Request(self.path, dict(self.headers), body)
            answer = receiver.answer(request)
            receiver.requests.append(request)
            if answer.status // 100 == 2:
                receiver.taken.append(request)
            data = answer.text.encode()
            self.send_response(answer.status)
            for name, value in {**answer.headers, "Content-Length": str(len(data))}.items():
                self.send_header(name, value)
            self.end_headers()
            self.wfile.write(data)

        do_GET = do_POST

        def log_message(self, format: str, *args: object) -> None:
            pass

    class Server(ThreadingHTTPServer):
        def handle_error(self, request: object, client_address: object) -> None:
            pass  # who asked went away

    server = Server(("127.0.0.1", port), Handler)
    receiver.url = f"http://127.0.0.1:{server.server_port}"
    thread = threading.Thread(target=server.serve_forever, args=(0.02,), daemon=True)
    thread.start()
    try:
        yield receiver
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
