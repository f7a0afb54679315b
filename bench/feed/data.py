"""What the topics are filled with: the same seed gives the same bytes, chunk by chunk."""

import struct
from collections.abc import Callable, Mapping
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

CHUNK = 20_000
"""Records that are made, and sent, at once; all of a chunk go to one partition."""

START = 1_767_225_600_000
"""Event time of the first record, epoch milliseconds."""

Message = dict[str, object]
"""What `produce` takes: value and key, and headers where there are some."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Fill:
    """What one topic gets."""

    topic: str
    kind: str
    """One of KINDS."""
    records: int
    keys: int
    """Users there are."""
    partitions: int = 4
    seed: int = 0
    start: int = START
    span: int = 60_000
    """Milliseconds of event time over which the records are spread."""
    delay: float = 0.25
    """Greatest distance of an event from its profile, as a share of all events (`late`)."""
    schema: int = 0
    """Id of the writer schema (Avro)."""

    @property
    def chunks(self) -> int:
        """How many chunks there are."""
        return -(-self.records // CHUNK)


def messages(fill: Fill, chunk: int) -> list[Message]:
    """Return one chunk."""
    numbers = _numbers(fill, chunk)
    return KINDS[fill.kind](fill, numbers, np.random.default_rng([fill.seed, chunk]))


def _numbers(fill: Fill, chunk: int) -> np.ndarray:
    first = chunk * CHUNK
    return np.arange(first, min(first + CHUNK, fill.records))


def _times(fill: Fill, numbers: np.ndarray) -> list[int]:
    return (fill.start + numbers * fill.span // max(fill.records, 1)).tolist()


def _users(fill: Fill, numbers: np.ndarray, rng: np.random.Generator) -> list[int]:
    return rng.integers(0, fill.keys, len(numbers)).tolist()


def _near_users(fill: Fill, numbers: np.ndarray, rng: np.random.Generator) -> list[int]:
    """Users with an even number have their profile before their events, the others after them."""
    late = rng.integers(0, 2, len(numbers))
    away = rng.random(len(numbers)) * fill.delay
    place = numbers / fill.records + np.where(late, away, -away)
    place = np.abs(place)
    place = np.where(place > 1, 2 - place, place)
    user = np.minimum((place * fill.keys).astype(np.int64), fill.keys - 1)
    return np.minimum(user - user % 2 + late, fill.keys - 1).tolist()


def _clicks(fill: Fill, numbers: np.ndarray, rng: np.random.Generator) -> list[Message]:
    users = _near_users if fill.kind == "late_clicks" else _users
    rows = zip(users(fill, numbers, rng), _times(fill, numbers), numbers.tolist(), strict=True)
    return [
        {
            "value": b'{"user_id":"u%d","action":"click_%d","timestamp":%d,"amount":%.1f,'
            b'"sid":"s%08d"}' % (user, user % 7, at, _amount(user), number),
        }
        for user, at, number in rows
    ]


def kept_clicks(fill: Fill) -> int:
    """Return how many clicks have an amount of at least 1."""
    kept = 0
    for chunk in range(fill.chunks):
        numbers = _numbers(fill, chunk)
        users = _users(fill, numbers, np.random.default_rng([fill.seed, chunk]))
        kept += sum(_amount(user) >= 1 for user in users)
    return kept


def clicks_in_windows(fill: Fill, width: int) -> pa.Table:
    """Return how many clicks of each user are in each window that ends before any partition does.

    Args:
        fill: Of kind `clicks`.
        width: Of a window, in milliseconds.

    Returns:
        (user_id, start in epoch milliseconds, clicks).
    """
    users: list[int] = []
    times: list[int] = []
    for chunk in range(fill.chunks):
        numbers = _numbers(fill, chunk)
        users += _users(fill, numbers, np.random.default_rng([fill.seed, chunk]))
        times += _times(fill, numbers)
    starts = np.array(times, np.int64) // width * width
    lasts = [times[min((chunk + 1) * CHUNK, fill.records) - 1] for chunk in range(fill.chunks)]
    ended = min(max(lasts[part :: fill.partitions]) for part in range(fill.partitions))
    groups = np.stack([starts, np.array(users, np.int64)], axis=1)
    found, counts = np.unique(groups[starts + width <= ended], axis=0, return_counts=True)
    names = pa.array([f"u{user}" for user in found[:, 1].tolist()])
    return pa.table({"user_id": names, "start": found[:, 0], "clicks": counts})


def _amount(user: int) -> float:
    return (user % 1000) / 10


def _profiles(fill: Fill, numbers: np.ndarray, rng: np.random.Generator) -> list[Message]:
    return [
        {
            "key": b"u%d" % user,
            "value": b'{"user_id":"u%d","subscription_tier":"tier_%d","full_name":"Name %d"}'
            % (user, user % 5, user),
        }
        for user in numbers.tolist()
    ]


def _purchases(fill: Fill, numbers: np.ndarray, rng: np.random.Generator) -> list[Message]:
    rows = zip(_users(fill, numbers, rng), _times(fill, numbers), numbers.tolist(), strict=True)
    return [
        {
            "value": b'{"user_id":"u%d","order_id":"o%08d","timestamp":%d,"price":%.2f}'
            % (user, number, at, (number % 10_000) / 100),
        }
        for user, at, number in rows
    ]


def _balances(fill: Fill, numbers: np.ndarray, rng: np.random.Generator) -> list[Message]:
    rows = zip(_users(fill, numbers, rng), numbers.tolist(), strict=True)
    return [
        {"key": b"u%d" % user, "value": b'{"user_id":"u%d","balance":%d}' % (user, number)}
        for user, number in rows
    ]


def _avro_clicks(fill: Fill, numbers: np.ndarray, rng: np.random.Generator) -> list[Message]:
    head = b"\0" + struct.pack(">I", fill.schema)
    double = struct.Struct("<d").pack
    rows = zip(_users(fill, numbers, rng), _times(fill, numbers), numbers.tolist(), strict=True)
    return [
        {
            "value": b"".join(
                (
                    head,
                    _text(b"u%d" % user),
                    _text(b"click_%d" % (user % 7)),
                    zigzag(at),
                    double(_amount(user)),
                    _text(b"s%08d" % number),
                )
            ),
        }
        for user, at, number in rows
    ]


def _avro_profiles(fill: Fill, numbers: np.ndarray, rng: np.random.Generator) -> list[Message]:
    head = b"\0" + struct.pack(">I", fill.schema)
    return [
        {
            "key": b"u%d" % user,
            "value": head
            + _text(b"u%d" % user)
            + _text(b"tier_%d" % (user % 5))
            + _text(b"Name %d" % user),
        }
        for user in numbers.tolist()
    ]


def _changes(fill: Fill, numbers: np.ndarray, rng: np.random.Generator) -> list[Message]:
    """Changes as Debezium's converters leave them: 76 bytes each, the operation in a header."""
    head = b"\0" + struct.pack(">I", fill.schema)
    double = struct.Struct("<d").pack
    rows = zip(_users(fill, numbers, rng), _times(fill, numbers), numbers.tolist(), strict=True)
    found: list[Message] = []
    for user, at, number in rows:
        name = b"account-%08d" % user
        value = b"".join(
            (
                head,
                zigzag(1_000_000_000 + user),
                _text(name),
                double((number % 1000) / 10),
                _text(b"active" if number % 2 else b"closed"),
                zigzag(at),
            )
        )
        value += _text(b"x" * (CHANGE_BYTES - len(value) - 1))
        found.append(
            {"key": name, "value": value, "headers": [("dbz.op", _OPERATIONS[number % 4])]}
        )
    return found


CHANGE_BYTES = 76
_OPERATIONS = (b"c", b"u", b"u", b"r")


def _text(data: bytes) -> bytes:
    return zigzag(len(data)) + data


def zigzag(number: int) -> bytes:
    r"""Return a number as Avro writes it.

    >>> zigzag(0), zigzag(-1), zigzag(64)
    (b'\x00', b'\x01', b'\x80\x01')
    """
    rest = (number << 1) ^ (number >> 63)
    found = bytearray()
    while rest > 0x7F:
        found.append(rest & 0x7F | 0x80)
        rest >>= 7
    found.append(rest)
    return bytes(found)


def avro_schema(name: str, **fields: str) -> dict[str, object]:
    """Return the writer schema of a record."""
    return {
        "type": "record",
        "name": name,
        "fields": [{"name": field, "type": kind} for field, kind in fields.items()],
    }


CLICK_SCHEMA = avro_schema(
    "Click", user_id="string", action="string", timestamp="long", amount="double", sid="string"
)
PROFILE_SCHEMA = avro_schema(
    "Profile", user_id="string", subscription_tier="string", full_name="string"
)
CHANGE_SCHEMA = avro_schema(
    "Change",
    id="long",
    account="string",
    amount="double",
    status="string",
    updated_at="long",
    note="string",
)

Make = Callable[[Fill, np.ndarray, np.random.Generator], list[Message]]

KINDS: Mapping[str, Make] = {
    "clicks": _clicks,
    "late_clicks": _clicks,
    "profiles": _profiles,
    "balances": _balances,
    "purchases": _purchases,
    "avro_clicks": _avro_clicks,
    "avro_profiles": _avro_profiles,
    "avro_changes": _changes,
}
