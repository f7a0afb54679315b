"""What a throttle keeps of a key: what left last, until when it waits, and what is held."""

import struct
from dataclasses import dataclass

SENT = 0
"""Side byte of keys that sent a change."""

_HEAD = struct.Struct(">qqBI")
_VALUE, _HOLDS, _HELD = 1, 2, 4


@dataclass(frozen=True, slots=True)
class Held:
    """A change that is held back."""

    value: bytes | None
    """None: it deletes the key."""
    ts: int


@dataclass(frozen=True, slots=True)
class SentKey:
    """A key that sent a change a short time ago."""

    until: int
    """Batch time from which the next one may leave, epoch milliseconds."""
    value: bytes | None
    """What left; None: it deleted the key."""
    held: Held | None


def sent_value(key: SentKey) -> bytes:
    """Encode what is kept of a key."""
    held = key.held
    flags = _VALUE * (key.value is not None)
    if held is not None:
        flags |= _HOLDS | _HELD * (held.value is not None)
    value = key.value or b""
    head = _HEAD.pack(key.until, held.ts if held else 0, flags, len(value))
    return head + value + ((held.value or b"") if held else b"")


def read_sent(data: bytes) -> SentKey:
    """Decode what `sent_value` wrote."""
    until, ts, flags, length = _HEAD.unpack_from(data)
    value, rest = data[_HEAD.size : _HEAD.size + length], data[_HEAD.size + length :]
    held = Held(rest if flags & _HELD else None, ts) if flags & _HOLDS else None
    return SentKey(until, value if flags & _VALUE else None, held)
