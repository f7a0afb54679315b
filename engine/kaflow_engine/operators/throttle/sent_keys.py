"""What a throttle keeps of a key: what left last, until when it waits, and what is held."""

import struct
from dataclasses import dataclass

SENT = 0
"""Side byte of keys that sent a change."""

_HEAD = struct.Struct(">qqBI")
_LENGTH = struct.Struct(">I")
_VALUE, _HOLDS, _HELD, _HEADERS, _HELD_HEADERS = 1, 2, 4, 8, 16


@dataclass(frozen=True, slots=True)
class Held:
    """A change that is held back."""

    value: bytes | None
    """None: it deletes the key."""
    ts: int
    headers: str | None = None
    """As text."""


@dataclass(frozen=True, slots=True)
class SentKey:
    """A key that sent a change a short time ago."""

    until: int
    """Batch time from which the next one may leave, epoch milliseconds."""
    value: bytes | None
    """What left; None: it deleted the key."""
    held: Held | None
    headers: str | None = None
    """Of what left, as text."""

    def shows(self, change: Held) -> bool:
        """Tell whether a change is what left last."""
        return (change.value, change.headers) == (self.value, self.headers)


def sent_value(key: SentKey) -> bytes:
    """Encode what is kept of a key."""
    held = key.held
    flags = _VALUE * (key.value is not None) | _HEADERS * (key.headers is not None)
    if held is not None:
        flags |= _HOLDS | _HELD * (held.value is not None)
        flags |= _HELD_HEADERS * (held.headers is not None)
    value = key.value or b""
    head = _HEAD.pack(key.until, held.ts if held else 0, flags, len(value))
    texts = b"".join(map(_with_length, (key.headers, None if held is None else held.headers)))
    return head + value + texts + ((held.value or b"") if held else b"")


def _with_length(headers: str | None) -> bytes:
    text = b"" if headers is None else headers.encode()
    return b"" if headers is None else _LENGTH.pack(len(text)) + text


def read_sent(data: bytes) -> SentKey:
    """Decode what `sent_value` wrote."""
    until, ts, flags, length = _HEAD.unpack_from(data)
    value, rest = data[_HEAD.size : _HEAD.size + length], data[_HEAD.size + length :]
    texts: list[str | None] = []
    for flag in (_HEADERS, _HELD_HEADERS):
        end = _LENGTH.size + _LENGTH.unpack_from(rest)[0] if flags & flag else 0
        texts.append(rest[_LENGTH.size : end].decode() if end else None)
        rest = rest[end:]
    held = Held(rest if flags & _HELD else None, ts, texts[1]) if flags & _HOLDS else None
    return SentKey(until, value if flags & _VALUE else None, held, texts[0])
