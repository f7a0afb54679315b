"""Reads records of topics into Arrow, bounded and read committed."""

import time
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import pyarrow as pa
from confluent_kafka import Consumer, KafkaException, Message, TopicPartition

from kaflow_engine.connectors.kafka.admin import offsets as offsets_of
from kaflow_engine.connectors.kafka.admin import require
from kaflow_engine.connectors.kafka.client import Client, KafkaSettings, open_consumer
from kaflow_engine.errors import SourceError
from kaflow_engine.flow.records import RECORDS

CHUNK = 10_000
REACH = 64
MOST_BYTES = 4 * 1024 * 1024
_SPARING: Mapping[str, object] = {
    "queued.max.messages.kbytes": 1_024,
    "fetch.message.max.bytes": 65_536,
}
"""Of a client that looks at a few records and should not fetch what comes behind them."""


def read_first(
    settings: KafkaSettings, topic: str, limit: int = 100, timeout: int = 10_000
) -> pa.Table:
    """Return up to `limit` of the oldest records of a topic (RECORDS): its sample.

    Raises:
        SourceError: The topic does not exist or cannot be read, or no broker answers in time.
    """
    starts, ends = _bounds(settings, topic, timeout)
    messages = collect(open_consumer(settings), topic, starts, ends, timeout, limit)
    return to_records(messages)


@dataclass(frozen=True, slots=True)
class Tail:
    """The newest records of a topic."""

    records: pa.Table
    """RECORDS, by timestamp, oldest first."""
    ends: Mapping[int, int]
    """Partition to the offset behind its last committed record."""


def tail(
    settings: KafkaSettings,
    topic: str,
    limit: int,
    timeout: int = 10_000,
    most_bytes: int = MOST_BYTES,
) -> Tail:
    """Return the newest `limit` records of a topic, or fewer where that is much to read.

    Transaction marks and compacted records take offsets too: it looks back over at most
    `limit * REACH` offsets of a partition.

    Args:
        settings: How to reach the brokers.
        topic: Its name.
        limit: Records.
        timeout: Milliseconds for each answer of the brokers, and for each look back.
        most_bytes: Of keys and values; no more are read once it is reached.

    Raises:
        SourceError: As in `read_first`.
    """
    firsts, ends = _bounds(settings, topic, timeout)
    client = open_consumer(settings, **_SPARING)
    found: dict[tuple[int | None, int | None], Message] = {}
    try:
        for reach in (limit, limit * REACH):
            starts = {p: max(firsts[p], end - reach) for p, end in ends.items()}
            messages = collect(
                client, topic, starts, ends, timeout, close=False, most_bytes=most_bytes
            )
            # a longer look may end, for its bytes, before it has come to the newest
            found |= {(message.partition(), message.offset()): message for message in messages}
            counts = Counter(partition for partition, _ in found)
            enough = all(counts[p] >= limit or starts[p] == firsts[p] for p in ends)
            if enough or _bytes(messages) >= most_bytes:
                break
    finally:
        client.api.close()
    newest = sorted(found.values(), key=lambda m: (m.timestamp()[1], m.partition(), m.offset()))
    return Tail(to_records(newest[-limit:] if limit else []), ends)


def read_all(settings: KafkaSettings, topic: str, timeout: int = 30_000) -> pa.Table:
    """Return every record of a topic up to its present end (RECORDS), by partition and offset.

    Raises:
        SourceError: As in `read_first`.
    """
    starts, ends = _bounds(settings, topic, timeout)
    messages = collect(open_consumer(settings), topic, starts, ends, timeout)
    return to_records(sorted(messages, key=lambda m: (m.partition(), m.offset())))


def read_ranges(
    settings: KafkaSettings,
    topic: str,
    start: Mapping[int, int],
    end: Mapping[int, int],
    timeout: int = 30_000,
) -> pa.Table:
    """Return the records of each partition with start <= offset < end (RECORDS).

    Raises:
        SourceError: As in `read_first`.
    """
    return to_records(collect(open_consumer(settings), topic, start, end, timeout))


def collect(
    client: Client[Consumer],
    topic: str,
    starts: Mapping[int, int],
    ends: Mapping[int, int],
    timeout: int,
    limit: int | None = None,
    close: bool = True,
    exact: bool = False,
    most_bytes: int | None = None,
) -> list[Message]:
    """Return the messages of `[start, end)` of each partition, each partition in offset order.

    A partition also ends where it has no more records for this consumer, so an `end` may lie
    beyond. With `exact` it does not: a reader of committed records waits for open transactions.
    After `limit` messages, or `most_bytes` of keys and values, no more are read.

    Raises:
        SourceError: The topic cannot be read, or not within the timeout.
        TimeoutError: With `exact`, an end that is not reached in time.
    """
    consumer = client.api
    open_ends = {p: ends[p] for p in starts if starts[p] < ends[p]}
    found: list[Message] = []
    size = 0
    deadline = time.monotonic() + timeout / 1000
    doing = f"reading topic '{topic}'"
    try:
        consumer.assign([TopicPartition(topic, p, starts[p]) for p in open_ends])
        while open_ends and (limit is None or len(found) < limit):
            if time.monotonic() > deadline:
                raise TimeoutError(topic) if exact else _too_slow(client, topic, open_ends, timeout)
            room = CHUNK if limit is None else min(CHUNK, limit - len(found))
            room, before = 1 if most_bytes is not None else room, len(found)
            first = consumer.poll(0.1)
            if first is None:
                continue
            # consume would wait for a full chunk, so it only fetches what is there already
            rest = consumer.consume(room - 1, timeout=0) if room > 1 else []
            for message in (first, *rest):
                if message.error() is not None and _not_yet(message, open_ends, exact):
                    continue
                _take(client, message, open_ends, found, doing, timeout)
            if most_bytes is not None:
                size += _bytes(found[before:])
                if size >= most_bytes:
                    break
    except KafkaException as failure:
        raise client.trouble(failure, doing, timeout).as_source() from failure
    finally:
        if close:
            consumer.close()
        else:
            consumer.unassign()
    return found[:limit]


def to_records(messages: Sequence[Message]) -> pa.Table:
    """Return messages as a table (RECORDS), in their order."""
    columns = {
        "topic": [m.topic() for m in messages],
        "partition": [m.partition() for m in messages],
        "offset": [m.offset() for m in messages],
        "timestamp": [m.timestamp()[1] for m in messages],
        "key": [m.key() for m in messages],
        "value": [m.value() for m in messages],
        "headers": [[{"key": k, "value": v} for k, v in m.headers() or ()] for m in messages],
    }
    return pa.table(columns, schema=RECORDS)


def _bytes(messages: Sequence[Message]) -> int:
    return sum(len(m.key() or b"") + len(m.value() or b"") for m in messages)


def _take(
    client: Client[Consumer],
    message: Message,
    open_ends: dict[int, int],
    found: list[Message],
    doing: str,
    timeout: int,
) -> None:
    partition, offset, error = message.partition(), message.offset(), message.error()
    if error is not None and error.name() == "GROUP_AUTHORIZATION_FAILED":
        return  # the client asks for its group's coordinator, but the group is never used
    if error is not None and error.name() != "_PARTITION_EOF":
        raise client.trouble(error, doing, timeout).as_source()
    if partition is None or offset is None or partition not in open_ends:
        return
    if error is not None:
        del open_ends[partition]
        return
    if offset < open_ends[partition]:
        found.append(message)
    if offset >= open_ends[partition] - 1:
        del open_ends[partition]


def _not_yet(message: Message, ends: Mapping[int, int], exact: bool) -> bool:
    error = message.error()
    if not exact or error is None or error.name() != "_PARTITION_EOF":
        return False
    return (message.offset() or 0) < ends.get(message.partition() or 0, 0)


def _bounds(
    settings: KafkaSettings, topic: str, timeout: int
) -> tuple[dict[int, int], dict[int, int]]:
    partitions = require(settings, [topic], timeout)
    first = offsets_of(settings, partitions, "earliest", timeout)[topic]
    return first, offsets_of(settings, partitions, "latest", timeout)[topic]


def _too_slow(
    client: Client[Consumer], topic: str, open_ends: Mapping[int, int], timeout: int
) -> SourceError:
    if client.complaints.errors:
        doing = f"reading topic '{topic}'"
        return client.trouble(client.complaints.errors[-1], doing, timeout).as_source()
    left = ", ".join(str(p) for p in sorted(open_ends))
    return SourceError(
        f"topic '{topic}' was not read to its end within {timeout / 1000:g} s "
        f"(partitions left: {left})"
    )
