"""What a port serves: requests, answers, and those that go on."""

from collections.abc import Iterator
from dataclasses import dataclass
from http import HTTPStatus
from typing import Protocol


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """What connections may take up."""

    connections: int = 256
    """Most of them; one more takes the place of the oldest that has not asked for anything yet."""
    pages: int = 8
    """Most pages that are made or sent at a time; who asks for one more is refused."""
    asking_s: float = 5.0
    """After which a connection without a whole request is closed."""
    answering_s: float = 10.0
    """After which one that does not take its answer is closed."""
    streams: int = 2
    """Most answers that go on for as long as there is something to tell; each has a thread."""


@dataclass(frozen=True, slots=True)
class Request:
    """What is asked."""

    method: str
    path: str
    authorization: str | None


@dataclass(frozen=True, slots=True)
class Answer:
    """What is sent back."""

    code: HTTPStatus
    kind: str
    body: bytes
    headers: tuple[tuple[str, str], ...] = ()


class Stream(Protocol):
    """An answer in pieces, which come as they are made."""

    @property
    def kind(self) -> str:
        """Its content type."""
        ...

    def __iter__(self) -> Iterator[bytes]:
        """Yield the pieces, in a thread that waits for them."""
        ...

    def close(self) -> None:
        """End it, from any thread: no one takes it any more."""
        ...


class Site(Protocol):
    """What is asked for."""

    def at_once(self, request: Request) -> Answer | None:
        """Return an answer that costs next to nothing and is short; None: more must be done."""
        ...

    def stream(self, request: Request) -> Stream | None:
        """Return what goes on, which begins when it is iterated; None: a page must be made."""
        ...

    def page(self, request: Request) -> Answer:
        """Make a page, in a thread of its own."""
        ...

    def busy(self) -> Answer:
        """Return what those get for whom no page is made now; it is short."""
        ...
