"""The body of an answer, read within limits of size and of time."""

from time import monotonic
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import httpx


class BodyTooLarge(Exception):
    """A body has more bytes than there is room for."""


def read_body(answer: "httpx.Response", most_bytes: int, until: float) -> bytes:
    """Return the body, of which bytes may come one by one, each within the timeout.

    Args:
        answer: Of which nothing but status and headers was read.
        most_bytes: Of the body, once it is unpacked.
        until: When it must be there, by the monotonic clock.

    Raises:
        BodyTooLarge: It has more bytes.
        httpx.ReadTimeout: It takes longer.
        httpx.TransportError: It breaks off.
        httpx.DecodingError: It is not encoded as it says.
    """
    import httpx

    body = bytearray()
    for part in answer.iter_bytes():
        body += part
        if len(body) > most_bytes:
            raise BodyTooLarge
        if monotonic() > until:
            raise httpx.ReadTimeout("the body takes too long")
    return bytes(body)
