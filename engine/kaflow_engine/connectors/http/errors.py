"""Errors of HTTP servers: what each answer calls for."""

from kaflow_engine.errors import SinkAway, SinkUnfit


class HttpAway(SinkAway):
    """The server does not answer, or cannot take requests now: it may heal."""


class HttpUnfit(SinkUnfit):
    """The address or the login is not what the server wants: someone must act."""


OF_ADDRESS = frozenset({401, 402, 403, 404, 405, 407, 410, 421, 426, 451, 501, 505})
"""Statuses that every request to this address would get, beside those that send elsewhere (3xx).

https://www.rfc-editor.org/rfc/rfc9110#section-15
"""
LATER = frozenset({408, 425, 429})
"""Statuses that ask for another try, beside those of servers that are in trouble (5xx)."""


def is_of_address(status: int) -> bool:
    """Tell whether the address or the login is the cause.

    >>> is_of_address(301), is_of_address(403), is_of_address(422)
    (True, True, False)
    """
    return status in OF_ADDRESS or status // 100 in (1, 3)


def is_later(status: int) -> bool:
    """Tell whether trying again may help.

    >>> is_later(503), is_later(429), is_later(400)
    (True, True, False)
    """
    return not is_of_address(status) and (status in LATER or status >= 500)
