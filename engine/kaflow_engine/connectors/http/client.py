"""Requests to one address: sent, tried again while that can help, and what came of each."""

import atexit
import hashlib
import hmac
import json
import logging
import os
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from kaflow_engine.connectors.http.errors import HttpAway, HttpUnfit, is_later, is_of_address

if TYPE_CHECKING:
    import httpx

_PAUSES = (0.1, 0.5, 2.0)
"""Seconds before a request is sent again; what lasts longer, the run waits for."""
_LONGEST_PAUSE = 30.0
"""Seconds that a server may ask to be left alone for, before the run waits instead."""
_SHOWN = 200
"""Characters of an answer."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Endpoint:
    """An address, and how its server knows who sends."""

    name: str
    """Of the connection."""
    url: str = field(repr=False)
    headers: Mapping[str, str] = field(repr=False)
    secret: str | None = field(default=None, repr=False)
    """With which bodies are signed."""
    timeout: float
    """Seconds."""

    @staticmethod
    def of(name: str, connection: Mapping[str, str]) -> "Endpoint":
        """Return the endpoint of a connection, as the configuration hands it over."""
        return Endpoint(
            name=name,
            url=connection["url"],
            headers=json.loads(connection["headers"]),
            secret=connection.get("secret"),
            timeout=int(connection["timeout"]) / 1000,
        )

    @property
    def server(self) -> str:
        """Where it is, without what may be secret in its path."""
        parts = urlsplit(self.url)
        return f"{parts.scheme}://{parts.netloc.rpartition('@')[2]}"


@dataclass(frozen=True, slots=True)
class NotTaken:
    """A body that the server does not want, and never will."""

    error: str
    message: str


def send(endpoint: Endpoint, body: bytes, key: str) -> NotTaken | None:
    """Send a body; return why it is not taken, or None if it is.

    Args:
        endpoint: Where to.
        body: JSON.
        key: What tells the receiver that it has this body already.

    Raises:
        HttpAway: The server does not answer, or asks for another try.
        HttpUnfit: It would answer so to every body.
    """
    for pause in (*_PAUSES, None):
        try:
            return _tried(endpoint, body, key)
        except _Later as later:
            asked = later.after or 0.0
            if pause is None or asked > _LONGEST_PAUSE:
                raise HttpAway(
                    f"webhook '{endpoint.name}' at {endpoint.server} {later}",
                    hint="look at the server's log; rows wait until it takes them",
                ) from later
            time.sleep(max(pause, asked))
    raise AssertionError


class _Later(Exception):
    def __init__(self, why: str, after: float | None = None) -> None:
        super().__init__(why)
        self.after = after


def _tried(endpoint: Endpoint, body: bytes, key: str) -> NotTaken | None:
    import httpx

    headers = {**endpoint.headers, "Content-Type": "application/json", "Idempotency-Key": key}
    if endpoint.secret is not None:
        signature = hmac.new(endpoint.secret.encode(), body, hashlib.sha256).hexdigest()
        headers["X-Kaflow-Signature"] = f"sha256={signature}"
    try:
        answer = _client(os.getpid(), endpoint.timeout).post(
            endpoint.url, content=body, headers=headers
        )
    except httpx.TimeoutException as error:
        raise _Later(f"did not answer in {endpoint.timeout:g} s") from error
    except httpx.TransportError as error:
        raise _Later(f"cannot be reached: {type(error).__name__}") from error
    status = answer.status_code
    if status // 100 == 2:
        return None
    if is_later(status):
        raise _Later(f"answers {status}", _seconds(answer.headers.get("Retry-After")))
    if is_of_address(status):
        raise HttpUnfit(
            f"webhook '{endpoint.name}' at {endpoint.server} answers {status}",
            hint=f"correct webhook.connections.{endpoint.name} in the configuration",
        )
    text = " ".join(answer.text.split())[:_SHOWN]
    return NotTaken(f"HTTP {status}", text or f"the server answers {status}")


def _seconds(text: str | None) -> float | None:
    """Return what `Retry-After` asks for; a date is left to the pauses of the run."""
    return float(text) if text is not None and text.isdecimal() else None


def keep_quiet() -> None:
    """Keep addresses and headers, which the library logs, out of logs."""
    for logger in ("httpx", "httpcore"):
        logging.getLogger(logger).setLevel(logging.WARNING)


@lru_cache(maxsize=16)
def _client(process: int, timeout: float) -> "httpx.Client":
    """Return what keeps connections open; keyed by process, for a forked one must not share."""
    import httpx

    keep_quiet()
    client = httpx.Client(timeout=timeout, follow_redirects=False)
    atexit.register(client.close)
    return client
