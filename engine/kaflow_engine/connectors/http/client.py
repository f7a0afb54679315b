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
from datetime import UTC, datetime
from functools import lru_cache
from time import monotonic
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from kaflow_engine.connectors.http.body import BodyTooLarge, read_body
from kaflow_engine.connectors.http.errors import HttpAway, HttpUnfit, is_later, is_of_address
from kaflow_engine.connectors.http.retry_after import seconds_asked
from kaflow_engine.masking import remember_settings, without_secrets

if TYPE_CHECKING:
    import httpx

_PAUSES = (0.1, 0.5, 2.0)
"""Seconds before a request is sent again; what lasts longer, the run waits for."""
_LONGEST_PAUSE = 30.0
"""Seconds that a server may ask to be left alone for, before the run waits instead."""
_MOST_BYTES = 64 << 20
"""Of an answer, which is held in memory."""
_SHOWN = 200
"""Characters of an answer."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Endpoint:
    """An address, and how its server knows who sends."""

    title: str
    """What it is called in messages, such as `webhook 'alerts'`."""
    remedy: str
    """What to correct where the address or the login is wrong."""
    url: str = field(repr=False)
    headers: Mapping[str, str] = field(repr=False)
    secret: str | None = field(default=None, repr=False)
    """With which bodies are signed."""
    timeout: float
    """Seconds."""

    @staticmethod
    def of(name: str, connection: Mapping[str, str]) -> "Endpoint":
        """Return the endpoint of a connection, as the configuration hands it over; what is secret
        of it is masked from now on."""
        headers = json.loads(connection["headers"])
        remember_settings({"headers": headers, "secret": connection.get("secret")})
        return Endpoint(
            title=f"webhook '{name}'",
            remedy=f"correct webhook.connections.{name} in the configuration",
            url=connection["url"],
            headers=headers,
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
    status: int | None = field(default=None, compare=False)
    """Of the answer; None: it says that the body is taken, and is not one itself."""


class Later(Exception):
    """Another try may help; the text says what happened, behind the name of the server."""

    def __init__(self, why: str, after: float = 0.0, status: int | None = None) -> None:
        super().__init__(why)
        self.status = status
        """What the server answers; None: nothing."""
        self.after = after
        """Seconds that the server asks to be left alone for."""


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
            answer = post(endpoint, body, key, reads=False)
        except Later as later:
            if pause is None or later.after > _LONGEST_PAUSE:
                raise HttpAway(
                    f"{endpoint.title} at {endpoint.server} {later}",
                    hint="look at the server's log; rows wait until it takes them",
                ) from later
            time.sleep(max(pause, later.after))
        else:
            return answer if isinstance(answer, NotTaken) else None
    raise AssertionError


def post(
    endpoint: Endpoint, body: bytes, key: str, connections: int = 1, *, reads: bool = True
) -> bytes | NotTaken:
    """Send a body once; return what the server answers, or why it does not take it.

    Args:
        endpoint: Where to.
        body: JSON.
        key: What tells the receiver that it has this body already.
        connections: How many threads of this process send at once.
        reads: Whether it matters what a server says that takes the body.

    Raises:
        Later: The server does not answer, or asks for another try.
        HttpUnfit: It would answer so to every body.
    """
    import httpx

    headers = {**endpoint.headers, "Content-Type": "application/json", "Idempotency-Key": key}
    if endpoint.secret is not None:
        signature = hmac.new(endpoint.secret.encode(), body, hashlib.sha256).hexdigest()
        headers["X-Kaflow-Signature"] = f"sha256={signature}"
    client = _client(os.getpid(), endpoint.timeout, connections)
    try:
        with client.stream("POST", endpoint.url, content=body, headers=headers) as answer:
            _check_status(endpoint, answer)
            return _answered(answer, monotonic() + endpoint.timeout, reads)
    except httpx.TimeoutException as error:
        raise Later(f"did not answer in {endpoint.timeout:g} s") from error
    except httpx.TransportError as error:
        raise Later(f"cannot be reached: {type(error).__name__}") from error


def _check_status(endpoint: Endpoint, answer: "httpx.Response") -> None:
    """Look whether a body was taken or refused at all, before anything is read of the answer."""
    status = answer.status_code
    if is_later(status):
        asked = seconds_asked(answer.headers.get("Retry-After"), datetime.now(UTC))
        raise Later(f"answers {status}", asked, status)
    if is_of_address(status):
        raise HttpUnfit(
            f"{endpoint.title} at {endpoint.server} answers {status}", hint=endpoint.remedy
        )


def _answered(answer: "httpx.Response", until: float, reads: bool) -> bytes | NotTaken:
    """Return what an answer says, or why the body is not taken."""
    import httpx

    status = answer.status_code
    is_taken = status // 100 == 2
    data, unread = b"", None
    try:
        data = read_body(answer, _MOST_BYTES, until)
    except httpx.DecodingError:
        unread = NotTaken("InvalidAnswer", "the body of the answer is not encoded as it says")
    except BodyTooLarge:
        unread = NotTaken("WrongAnswer", f"the answer has more than {_MOST_BYTES:,} bytes")
    except httpx.TransportError:
        if reads or not is_taken:
            raise
    if is_taken:
        return unread if unread is not None and reads else data
    text = " ".join(without_secrets(data.decode(errors="replace")).split())[:_SHOWN]
    return NotTaken(f"HTTP {status}", text or f"the server answers {status}", status)


def keep_quiet() -> None:
    """Keep addresses and headers, which the library logs, out of logs."""
    for logger in ("httpx", "httpcore"):
        logging.getLogger(logger).setLevel(logging.WARNING)


@lru_cache(maxsize=16)
def _client(process: int, timeout: float, connections: int) -> "httpx.Client":
    """Return what keeps connections open; keyed by process, for a forked one must not share."""
    import httpx

    keep_quiet()
    limits = httpx.Limits(
        max_connections=connections, max_keepalive_connections=connections, keepalive_expiry=30
    )
    client = httpx.Client(timeout=timeout, limits=limits, follow_redirects=False)
    atexit.register(client.close)
    return client
