"""The TCP connections of websockets."""

import socket
from urllib.parse import urlsplit

_PORTS = {"ws": 80, "wss": 443}


def opened(url: str, seconds: float) -> socket.socket:
    """Return a connection to the server of a URL.

    It is opened here so that nothing follows a redirection, which would carry secrets elsewhere.

    Raises:
        OSError: It cannot be opened.
    """
    parts = urlsplit(url)
    place = parts.hostname or "", parts.port or _PORTS[parts.scheme.lower()]
    found = socket.create_connection(place, timeout=seconds)
    found.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
    return found
