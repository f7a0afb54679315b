"""Errors of websockets: what each calls for."""

import ssl

from websockets.exceptions import ConnectionClosed, InvalidHandshake, InvalidStatus
from websockets.frames import CloseCode

from kaflow_engine.connectors.http.errors import is_later
from kaflow_engine.errors import SourceAway, SourceError, SourceUnfit
from kaflow_engine.flow.sources import WebsocketParams


class WebsocketAway(SourceAway):
    """The server does not answer, or has gone: it may heal."""


class WebsocketUnfit(SourceUnfit):
    """The server does not let us in, or sends what may not be taken: someone must act."""


def not_open(params: WebsocketParams, error: Exception) -> SourceError:
    """Return why a connection could not be opened."""
    at = f"websocket {params.url}"
    # a redirection is an answer, too, which the library then refuses to follow
    answered = isinstance(error.__context__, InvalidStatus)
    match error.__context__ if answered else error:
        case InvalidStatus(response=response):
            status = response.status_code
            if is_later(status):
                return WebsocketAway(f"{at} answers {status}")
            return WebsocketUnfit(
                f"{at} answers {status}",
                hint="correct 'url', 'headers' or 'parameters' of the source",
            )
        case ssl.SSLCertVerificationError():
            return WebsocketUnfit(
                f"the certificate of {at} cannot be verified",
                hint="name the file with its authority in SSL_CERT_FILE, or correct 'url'",
            )
        case InvalidHandshake() | ValueError():
            return WebsocketUnfit(
                f"{at} is none: its server does not speak the protocol",
                hint="correct 'url' of the source",
            )
        case TimeoutError():
            return WebsocketAway(f"{at} does not answer")
        case OSError(strerror=said):
            reason = (said or type(error).__name__).lower()
            return WebsocketAway(f"{at} cannot be reached: {reason}")
        case _:
            return WebsocketAway(f"{at} cannot be reached: {type(error).__name__}")


def closed(params: WebsocketParams, error: ConnectionClosed) -> SourceError:
    """Return why a connection has ended."""
    at = f"websocket {params.url}"
    ours, theirs = error.sent, error.rcvd
    if ours is not None and not error.rcvd_then_sent and ours.code == CloseCode.MESSAGE_TOO_BIG:
        return WebsocketUnfit(
            f"{at} sent a message of more than {params.max_bytes:,} bytes",
            hint="raise 'max_bytes' of the source; what it sends until then is lost",
        )
    if theirs is None:
        return WebsocketAway(f"the connection to {at} broke")
    said = f": {theirs.reason}" if theirs.reason else ""
    return WebsocketAway(f"{at} closed the connection with code {theirs.code}{said}")
