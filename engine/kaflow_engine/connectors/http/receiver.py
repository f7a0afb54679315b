"""The HTTP server of webhook sources: takes requests, checks them, and answers when they are safe.

| status | the request |
|---|---|
| 200 | is written down: `{"status": "received", "offset": 17}`, or had been: `"duplicate": true` |
| 400 | has no JSON value as its body |
| 401, 403 | is not signed, or not with the secret |
| 404, 405 | names no path of a source, or is no POST |
| 413 | has a body that is too large |
| 429 | must wait: the pipeline is behind |
| 503 | could not be written down, or the server ends |
"""

import hashlib
import hmac
import json
import logging
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from typing import Any

from kaflow_engine.connectors.http.intake import Intake
from kaflow_engine.connectors.journal.journal import Message
from kaflow_engine.errors import KaflowError
from kaflow_engine.flow.sources import WebhookParams

LOGGER = logging.getLogger("kaflow.webhook")

Receive = Callable[[], Awaitable[Mapping[str, Any]]]
Send = Callable[[Mapping[str, Any]], Awaitable[None]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Hook:
    """One path, and what its requests are checked by."""

    params: WebhookParams
    intake: Intake
    secret: str | None
    """What requests are signed with; None: they are not."""
    count: Callable[[int], None]
    """Called with the status of each answer."""


@dataclass(frozen=True, slots=True)
class Answer:
    """The answer to a sender."""

    status: int
    body: Mapping[str, object]
    headers: tuple[tuple[bytes, bytes], ...] = ()


class Refused(Exception):
    """A request that is not taken."""

    def __init__(self, status: int, why: str, *headers: tuple[bytes, bytes]) -> None:
        super().__init__(why)
        self.answer = Answer(status, {"error": why}, headers)


class Receiver:
    """An ASGI application: the paths of one port."""

    def __init__(self, hooks: Mapping[str, Hook]) -> None:
        self._hooks = hooks

    async def __call__(self, scope: Mapping[str, Any], receive: Receive, send: Send) -> None:
        """Answer one request."""
        if scope["type"] != "http":
            raise ValueError(f"unexpected {scope['type']}")
        try:
            answer = await self._answer(scope, receive)
        except Refused as refused:
            answer = refused.answer
        except KaflowError as error:
            LOGGER.warning("a request could not be written down: %s", error)
            answer = Answer(503, {"error": "cannot be written down now"}, (_LATER,))
        if (hook := self._hooks.get(scope["path"])) is not None:
            hook.count(answer.status)
        body = json.dumps(answer.body).encode()
        head = [(b"content-type", b"application/json"), (b"content-length", b"%d" % len(body))]
        await send(
            {
                "type": "http.response.start",
                "status": answer.status,
                "headers": [*head, *answer.headers],
            }
        )
        await send({"type": "http.response.body", "body": body})

    async def _answer(self, scope: Mapping[str, Any], receive: Receive) -> Answer:
        hook = self._hooks.get(scope["path"])
        if hook is None:
            raise Refused(404, "no source has this path")
        if scope["method"] != "POST":
            raise Refused(405, "send it with POST", (b"allow", b"POST"))
        if hook.intake.backlog >= hook.params.max_backlog:
            raise Refused(429, "the pipeline is behind; send it again later", _LATER)
        headers = {name.decode("latin-1"): value for name, value in scope["headers"]}
        body = await _body(hook.params.max_bytes, headers, receive)
        _check_signature(hook, headers, body)
        try:
            json.loads(body)
        except ValueError as error:
            raise Refused(400, f"the body is no JSON value: {error}") from None
        key = headers.get(hook.params.idempotency_header.lower())
        message = Message(value=body, key=None if key is None else key.decode("latin-1"))
        taken = await hook.intake.take(message)
        place = {"duplicate": True} if taken.offset is None else {"offset": taken.offset}
        return Answer(200, {"status": "received", **place})


_LATER = (b"retry-after", b"5")


async def _body(most: int, headers: Mapping[str, bytes], receive: Receive) -> bytes:
    """Return the body of a request, unless it is larger than `most` bytes."""
    said = headers.get("content-length", b"0")
    if said.isdigit() and int(said) > most:
        raise Refused(413, f"the body has more than {most:,} bytes")
    parts: list[bytes] = []
    size = 0
    while True:
        event = await receive()
        if event["type"] == "http.disconnect":
            raise Refused(400, "the body has no end")
        part: bytes = event.get("body", b"")
        size += len(part)
        if size > most:
            raise Refused(413, f"the body has more than {most:,} bytes")
        parts.append(part)
        if not event.get("more_body"):
            return b"".join(parts)


def _check_signature(hook: Hook, headers: Mapping[str, bytes], body: bytes) -> None:
    if hook.secret is None:
        return
    given = headers.get(hook.params.signature_header.lower())
    if given is None:
        raise Refused(401, f"the header {hook.params.signature_header} is missing")
    digest = hmac.new(hook.secret.encode(), body, hashlib.sha256).hexdigest()
    if not hmac.compare_digest(given, f"{hook.params.signature_prefix}{digest}".encode()):
        raise Refused(403, "the signature is wrong")
