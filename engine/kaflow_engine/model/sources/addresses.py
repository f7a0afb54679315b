"""Addresses, headers and secrets of sources: what each may be, and what to write instead."""

import re
from collections.abc import Iterator, Mapping
from typing import Annotated
from urllib.parse import urlsplit

from pydantic import AfterValidator, BeforeValidator

from kaflow_engine.model.names import (
    Filled,
    has_login,
    is_address,
    is_header,
    refuse,
    require_header,
    require_http,
)
from kaflow_engine.model.spec import Path, Spec

_OF_EACH_REQUEST = ("connection", "content-length", "content-type", "host", "upgrade")
_LOGIN = "write the login as headers: {Authorization: {secret: <name>}}"


class SecretSpec(Spec):
    """A secret of the configuration."""

    secret: Filled
    """One of `secrets` in the configuration."""


class ValueSpec(Spec):
    """A text, and behind it a secret of the configuration."""

    secret: Filled | None = None
    """One of `secrets` in the configuration."""
    prefix: str = ""
    """Stands before the secret; without one, all of the text."""


def _value(value: object) -> object:
    is_text = isinstance(value, str | int | float) and not isinstance(value, bool)
    return {"prefix": str(value)} if is_text else value


Value = Annotated[ValueSpec, BeforeValidator(_value)]
"""A text alone is its `prefix`."""


def secrets_among(path: Path, values: Mapping[str, ValueSpec]) -> Iterator[tuple[Path, str]]:
    """Yield the secrets that values name, and where."""
    for name, value in values.items():
        if value.secret is not None:
            yield (*path, name, "secret"), value.secret


def _listen(text: str) -> str:
    host, _, port = text.rpartition(":")
    if not host or not port.isdecimal() or int(port) > 65_535:
        raise refuse("is not where requests can arrive", "write host:port, such as 127.0.0.1:8088")
    return text


def _of_url(text: str) -> str:
    if not re.fullmatch(r"/[A-Za-z0-9._~!$&'()*+,;=:@/-]*", text):
        raise refuse("is not the path of a URL", "write /orders")
    return text


def _header(text: str) -> str:
    if not is_header(text):
        raise refuse("is not the name of a header", "write a name such as X-Signature")
    return text


def _is_of_each_request(name: str) -> bool:
    return name in _OF_EACH_REQUEST or name.startswith("sec-websocket-")


def _headers(given: Mapping[str, ValueSpec]) -> Mapping[str, ValueSpec]:
    for name, value in given.items():
        require_header(name, value.prefix, _is_of_each_request)
    return given


def _without_login(text: str) -> str:
    if has_login(text):
        raise refuse("must not hold a login", _LOGIN)
    if "#" in text:
        raise refuse("must not hold a '#'", "remove it and what follows: it is never sent")
    return text


def _websocket(text: str) -> str:
    scheme, _, rest = text.partition("://")
    if scheme.lower() not in ("ws", "wss") or not is_address(f"http://{rest}"):
        raise refuse("is not the address of a websocket", "write wss://host/path")
    return _without_login(text)


def _http(text: str) -> str:
    return _without_login(require_http(text))


def _broker(text: str) -> str:
    scheme, _, rest = text.partition("://")
    if scheme.lower() not in ("mqtt", "mqtts") or not is_address(f"http://{rest}"):
        raise refuse("is not the address of a broker", "write mqtts://host:8883")
    if "@" in rest:
        raise refuse("must not hold a login", "write user: and password: {secret: <name>}")
    if urlsplit(f"http://{rest}").path not in ("", "/"):
        raise refuse("has a path, which no broker has", "write mqtts://host:8883")
    return text


def _topic_filter(text: str) -> str:
    levels = text.split("/")
    wrong = any(
        ("#" in level and (level != "#" or place < len(levels) - 1))
        or ("+" in level and level != "+")
        for place, level in enumerate(levels)
    )
    if not text or wrong or "\0" in text:
        hint = "write plant/+/temperature or plant/#: '+' is a whole level, '#' the last one"
        raise refuse("is not a filter of MQTT topics", hint)
    return text


def _filters(given: tuple[str, ...]) -> tuple[str, ...]:
    if not given:
        raise refuse("names no topic", "write topics: [plant/#]")
    return given


_JSON_PATH = r"[^.\s]+(\.[^.\s]+)*"


def _json_path(text: str) -> str:
    if not re.fullmatch(_JSON_PATH, text):
        raise refuse("is not a path to a field", "write names with '.' between, as in data.items")
    return text


def _next(text: str) -> str:
    if text != NEXT_IN_HEADER and not re.fullmatch(_JSON_PATH, text):
        hint = f"write names with '.' between, as in links.next, or {NEXT_IN_HEADER}"
        raise refuse("is not a path to a field", hint)
    return text


NEXT_IN_HEADER = "header:Link"
"""Says that the address of the next page is the `Link` of an answer whose `rel` is `next`."""

Listen = Annotated[str, AfterValidator(_listen)]
UrlPath = Annotated[str, AfterValidator(_of_url)]
HeaderName = Annotated[str, AfterValidator(_header)]
Headers = Annotated[dict[str, Value], AfterValidator(_headers)]
WebsocketUrl = Annotated[str, AfterValidator(_websocket)]
HttpUrl = Annotated[str, AfterValidator(_http)]
Broker = Annotated[str, AfterValidator(_broker)]
TopicFilters = Annotated[
    tuple[Annotated[str, AfterValidator(_topic_filter)], ...], AfterValidator(_filters)
]
JsonPath = Annotated[str, AfterValidator(_json_path)]
NextPage = Annotated[str, AfterValidator(_next)]
