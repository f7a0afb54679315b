"""The port where health, status and metrics are read; it changes nothing."""

import hmac
import json
import logging
import socket
import time
from collections import deque
from collections.abc import Generator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import partial
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Lock, Thread
from typing import Any

from kaflow_engine.model.config import HttpConfig
from kaflow_engine.telemetry.metrics import Metrics
from kaflow_engine.telemetry.status import is_live, is_ready, statuses

LOGGER = logging.getLogger("kaflow.telemetry")

_JSON = "application/json"
_TEXT = "text/plain; version=0.0.4; charset=utf-8"
PATHS = ("/health/live", "/health/ready", "/status", "/metrics")
METHODS = ("GET", "HEAD")

MOST = 32
"""Most connections at a time; one more takes the place of the oldest, which may be a slow one."""
NEXT = 16
"""Ports that are tried one after the other, so that whoever scrapes them can list them."""
_LONGEST_S = 5.0


@dataclass(frozen=True, slots=True)
class Answer:
    """What is sent back."""

    code: HTTPStatus
    kind: str
    body: bytes


def answer(metrics: Metrics, token: str | None, path: str, authorization: str | None) -> Answer:
    """Return the answer to a GET or HEAD request.

    Args:
        metrics: Knows the pipelines.
        token: What `/status` and `/metrics` ask for; None: nothing.
        path: Of the request.
        authorization: The header of that name.
    """
    path = path.partition("?")[0].rstrip("/")
    newest = dict(metrics.newest)
    pipelines = list(newest.values())
    match path:
        case "/health/live":
            return _health(is_live(pipelines))
        case "/health/ready":
            return _health(is_ready(pipelines))
        case "/status" | "/metrics" if not _may(token, authorization):
            return _json(HTTPStatus.UNAUTHORIZED, {"error": "send 'Authorization: Bearer <token>'"})
        case "/status":
            return _json(HTTPStatus.OK, statuses(newest, time.time()))
        case "/metrics":
            return Answer(HTTPStatus.OK, _TEXT, metrics.text())
        case _:
            return _json(HTTPStatus.NOT_FOUND, {"error": "no such page", "pages": PATHS})


@contextmanager
def serve(config: HttpConfig, metrics: Metrics) -> Generator[str | None]:
    """Serve until the block ends; yields the address, None where there is none.

    A port that is taken is no reason to stop a pipeline: the next free one serves instead.
    """
    server = _open(config, metrics)
    if server is None:
        yield None
        return
    address = f"http://{config.host}:{server.server_address[1]}"
    thread = Thread(target=partial(server.serve_forever, 0.1), name="kaflow-http", daemon=True)
    thread.start()
    try:
        yield address
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


def _open(config: HttpConfig, metrics: Metrics) -> "_Server | None":
    handler = partial(_Handler, metrics, config.token)
    ports = range(config.port, min(config.port + NEXT, 65_536)) if config.port else ()
    for port in (*ports, 0):
        try:
            return _Server((config.host, port), handler)
        except OSError as error:
            if port in (config.port, 0):  # once, and where nothing helps
                LOGGER.warning("cannot serve health and metrics on port %d: %s", port, error)
    return None


def _may(token: str | None, authorization: str | None) -> bool:
    if token is None:
        return True
    return hmac.compare_digest(f"Bearer {token}".encode(), (authorization or "").encode())


def _health(good: bool) -> Answer:
    code = HTTPStatus.OK if good else HTTPStatus.SERVICE_UNAVAILABLE
    return _json(code, {"ok": good})


def _json(code: HTTPStatus, data: Any) -> Answer:
    return Answer(code, _JSON, json.dumps(data, indent=1).encode() + b"\n")


class _Server(ThreadingHTTPServer):
    """Nobody can hold it up: who is slow gives way to who comes next."""

    daemon_threads = True
    request_queue_size = 128

    def __init__(self, *about: Any) -> None:
        self._open: deque[socket.socket] = deque()
        self._lock = Lock()
        super().__init__(*about)

    def process_request(self, request: Any, client_address: Any) -> None:
        with self._lock:
            self._open.append(request)
            oldest = self._open.popleft() if len(self._open) > MOST else None
        if oldest is not None:
            with suppress(OSError):
                oldest.shutdown(socket.SHUT_RDWR)
        super().process_request(request, client_address)

    def shutdown_request(self, request: Any) -> None:
        with self._lock, suppress(ValueError):
            self._open.remove(request)
        super().shutdown_request(request)

    def handle_error(self, request: Any, client_address: Any) -> None:
        LOGGER.debug("a request ended early", exc_info=True)


class _Handler(BaseHTTPRequestHandler):
    server_version = "kaflow"
    sys_version = ""
    timeout = _LONGEST_S

    def __init__(self, metrics: Metrics, token: str | None, *about: Any) -> None:
        self._metrics, self._token = metrics, token
        super().__init__(*about)

    def __getattr__(self, name: str) -> Any:
        # how the library looks for what handles a method
        if name.startswith("do_"):
            return self._refuse
        raise AttributeError(name)

    def do_GET(self) -> None:
        found = answer(self._metrics, self._token, self.path, self.headers.get("Authorization"))
        self._send(found)

    def do_HEAD(self) -> None:
        self.do_GET()

    def _refuse(self) -> None:
        self._send(_json(HTTPStatus.METHOD_NOT_ALLOWED, {"error": "this port only reads"}))

    def _send(self, found: Answer) -> None:
        self.send_response(found.code)
        self.send_header("Content-Type", found.kind)
        self.send_header("Content-Length", str(len(found.body)))
        self.send_header("Cache-Control", "no-store")
        self.send_header("X-Content-Type-Options", "nosniff")
        match found.code:
            case HTTPStatus.METHOD_NOT_ALLOWED:
                self.send_header("Allow", ", ".join(METHODS))
            case HTTPStatus.UNAUTHORIZED:
                self.send_header("WWW-Authenticate", "Bearer")
            case _:
                pass
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(found.body)

    def log_message(self, format: str, *args: Any) -> None:
        LOGGER.debug(format, *args)
