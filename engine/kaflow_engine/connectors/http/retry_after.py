"""For how long a server asks to be left alone."""

from datetime import UTC, datetime
from email.utils import parsedate_to_datetime

_LONGEST_S = 86_400.0
"""Most that a server may ask for."""


def seconds_asked(text: str | None, now: datetime) -> float:
    """Return the seconds that a header `Retry-After` says, or until when (RFC 9110, 10.2.3).

    >>> seconds_asked("7", datetime(2026, 1, 1, tzinfo=UTC))
    7.0
    >>> seconds_asked("Thu, 01 Jan 2026 00:01:00 GMT", datetime(2026, 1, 1, tzinfo=UTC))
    60.0
    >>> seconds_asked("soon", datetime(2026, 1, 1, tzinfo=UTC))
    0.0
    """
    if text is None:
        return 0.0
    if text.strip().isdecimal():
        return min(float(text), _LONGEST_S)
    try:
        until = parsedate_to_datetime(text)
    except ValueError:
        return 0.0
    until = until if until.tzinfo else until.replace(tzinfo=UTC)
    return min(max(0.0, (until - now).total_seconds()), _LONGEST_S)
