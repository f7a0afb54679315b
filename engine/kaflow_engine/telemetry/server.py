"""The port where health, status and metrics are read; it changes nothing."""

import hmac
import json
import logging
import time
from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread
from typing import Any

from kaflow_engine.model.config import HttpConfig
from kaflow_engine.telemetry.metrics import Metrics
from kaflow_engine.telemetry.status import is_live, is_ready, statuses

LOGGER = logging.getLogger("kaflow.telemetry")

_JSON = "application/json"
_TEXT = "text/plain; version=0.0.4; charset=utf-8"
PATHS = ("/health/live", "/health/ready", "/status", "/metrics")


@dataclass(frozen=True, slots=True)
class Answer:
    """What is sent back."""

    code: HTTPStatus
    kind: str
    body: bytes


def answer(metrics: Metrics, token: str | None, path: str, authorization: str | None) -> Answer:
    """Return the answer to a GET request.

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

    A port that is taken is no reason to stop a pipeline: another free one serves instead.
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


def _open(config: HttpConfig, metrics: Metrics) -> ThreadingHTTPServer | None:
    handler = partial(_Handler, metrics, config.token)
    for port in dict.fromkeys((config.port, 0)):
        try:
            server = ThreadingHTTPServer((config.host, port), handler)
        except OSError as error:
            LOGGER.warning("cannot serve health and metrics on port %d: %s", port, error)
            continue
        server.daemon_threads = True
        return server
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


class _Handler(BaseHTTPRequestHandler):
    server_version = "kaflow"
    sys_version = ""
    timeout = 10.0

    def __init__(self, metrics: Metrics, token: str | None, *about: Any) -> None:
        self._metrics, self._token = metrics, token
        super().__init__(*about)

    def do_GET(self) -> None:
        found = answer(self._metrics, self._token, self.path, self.headers.get("Authorization"))
        self.send_response(found.code)
        self.send_header("Content-Type", found.kind)
        self.send_header("Content-Length", str(len(found.body)))
        self.end_headers()
        self.wfile.write(found.body)

    def log_message(self, format: str, *args: Any) -> None:
        LOGGER.debug(format, *args)
