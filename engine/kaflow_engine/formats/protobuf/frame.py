"""Which message of a schema a value is: indexes between the header and the message.

Behind the schema's id stand the number of indexes and the indexes, as zigzag varints: the place of
the message in the file, then in the message around it, and so on. A single 0 is the first message.
"""

from kaflow_engine.formats.decoded import Unreadable
from kaflow_engine.formats.framing import HEADER

_DEEPEST = 32


def message_path(value: bytes) -> tuple[tuple[int, ...], int]:
    """Return the path of the message, and where its bytes begin in a framed value.

    Raises:
        Unreadable: The indexes are broken.
    """
    count, at = _zigzag(value, HEADER)
    if count == 0:
        return (0,), at
    if not 0 < count <= _DEEPEST:
        raise Unreadable("NotFramed", f"{count} message indexes")
    path: list[int] = []
    for _ in range(count):
        index, at = _zigzag(value, at)
        path.append(index)
    return tuple(path), at


def _zigzag(value: bytes, at: int) -> tuple[int, int]:
    found = shift = 0
    while at < len(value) and shift < 35:
        byte = value[at]
        found |= (byte & 0x7F) << shift
        at, shift = at + 1, shift + 7
        if byte < 0x80:
            return (found >> 1) ^ -(found & 1), at
    raise Unreadable("NotFramed", "the message indexes end too early")
