"""The port where health, status, metrics and rows are read; it changes nothing."""

import hmac
import json
import socket
import time
from collections.abc import Generator
from contextlib import contextmanager
from http import HTTPStatus
from typing import Any

from kaflow_engine.model.config import HttpConfig
from kaflow_engine.telemetry.http_port import LOGGER, serving
from kaflow_engine.telemetry.metrics.metrics import Metrics
from kaflow_engine.telemetry.previews import (
    EVENTS,
    Mistake,
    Previews,
    RowEvents,
    Wanted,
    wanted_of,
)
from kaflow_engine.telemetry.site import Answer, Limits, Request, Stream
from kaflow_engine.telemetry.status import is_live, is_ready, statuses

_JSON = "application/json"
_TEXT = "text/plain; version=0.0.4; charset=utf-8"
PATHS = ("/health/live", "/health/ready", "/status", "/metrics", "/preview")
METHODS = ("GET", "HEAD")

NEXT = 16
"""Ports that are tried one after the other, so that whoever scrapes them can list them."""


class Pages:
    """What is read at the port; health costs next to nothing, and never waits for the others."""

    def __init__(
        self, metrics: Metrics, token: str | None = None, previews: Previews | None = None
    ) -> None:
        """Take who knows the pipelines, what all but health asks for, if anything, and who shows
        their rows."""
        self._metrics, self._token, self._previews = metrics, token, previews

    def answer(self, request: Request) -> Answer:
        """Return the answer to a request."""
        return self.at_once(request) or self.page(request)

    def at_once(self, request: Request) -> Answer | None:
        """Return health and refusals; None: more must be done."""
        if request.method not in METHODS:
            refused = {"error": "this port only reads"}
            return _json(HTTPStatus.METHOD_NOT_ALLOWED, refused, ("Allow", ", ".join(METHODS)))
        match _plain(request.path):
            case "/health/live":
                return _health(is_live([*self._metrics.newest.values()]))
            case "/health/ready":
                return _health(is_ready([*self._metrics.newest.values()]))
            case "/status" | "/metrics" if _may(self._token, request.authorization):
                return None
            case "/preview" if self._token is None:
                closed = {"error": "rows are shown with a token only: set http.token_file"}
                return _json(HTTPStatus.FORBIDDEN, closed)
            case "/preview" if self._previews is not None and _may(
                self._token, request.authorization
            ):
                wanted = wanted_of(request.path, self._previews)
                if isinstance(wanted, Mistake):
                    return _json(wanted.code, {"error": wanted.message, "hint": wanted.hint})
                return Answer(HTTPStatus.OK, EVENTS, b"") if request.method == "HEAD" else None
            case "/status" | "/metrics" | "/preview" if not _may(
                self._token, request.authorization
            ):
                wanted = {"error": "send 'Authorization: Bearer <token>'"}
                return _json(HTTPStatus.UNAUTHORIZED, wanted, ("WWW-Authenticate", "Bearer"))
            case _:
                return _json(HTTPStatus.NOT_FOUND, {"error": "no such page", "pages": PATHS})

    def stream(self, request: Request) -> Stream | None:
        """Return the rows of a preview as events."""
        if self._previews is None or _plain(request.path) != "/preview":
            return None
        wanted = wanted_of(request.path, self._previews)
        assert isinstance(wanted, Wanted)  # else it was refused
        return RowEvents(self._previews.lines(wanted))

    def page(self, request: Request) -> Answer:
        """Make `/status` or `/metrics`."""
        if _plain(request.path) == "/metrics":
            return Answer(HTTPStatus.OK, _TEXT, self._metrics.text())
        return _json(HTTPStatus.OK, statuses(dict(self._metrics.newest), time.time()))

    def busy(self) -> Answer:
        """Return what those get who ask for a page while many others do."""
        busy = {"error": "too many requests at a time"}
        return _json(HTTPStatus.SERVICE_UNAVAILABLE, busy, ("Retry-After", "1"))


@contextmanager
def serve(
    config: HttpConfig,
    metrics: Metrics,
    limits: Limits | None = None,
    previews: Previews | None = None,
) -> Generator[str | None]:
    """Serve until the block ends; yields the address, None where there is none.

    A port that is taken is no reason to stop a pipeline: the next free one serves instead.
    """
    listener = _listen(config)
    if listener is None:
        yield None
        return
    host = f"[{config.host}]" if ":" in config.host else config.host
    address = f"http://{host}:{listener.getsockname()[1]}"
    with serving(listener, Pages(metrics, config.token, previews), limits or Limits()):
        yield address


def _listen(config: HttpConfig) -> socket.socket | None:
    family = socket.AF_INET6 if ":" in config.host else socket.AF_INET
    ports = range(config.port, min(config.port + NEXT, 65_536)) if config.port else ()
    for port in (*ports, 0):
        try:
            return socket.create_server((config.host, port), family=family)
        except OSError as error:
            if port in (config.port, 0):  # once, and where nothing helps
                LOGGER.warning("cannot serve health and metrics on port %d: %s", port, error)
    return None


def _plain(path: str) -> str:
    return path.partition("?")[0].rstrip("/")


def _may(token: str | None, authorization: str | None) -> bool:
    if token is None:
        return True
    return hmac.compare_digest(f"Bearer {token}".encode(), (authorization or "").encode())


def _health(good: bool) -> Answer:
    code = HTTPStatus.OK if good else HTTPStatus.SERVICE_UNAVAILABLE
    return _json(code, {"ok": good})


def _json(code: HTTPStatus, data: Any, *headers: tuple[str, str]) -> Answer:
    return Answer(code, _JSON, json.dumps(data, indent=1).encode() + b"\n", headers)
