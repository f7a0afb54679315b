"""Sends requests over many connections, each waiting for its answer, and counts those that were
taken: `python -m bench.measure.senders PORT CONNECTIONS SECONDS`."""

import asyncio
import json
import sys
import time

BODY = b'{"id":%d,"user":"u%d","amount":12.5}'
WARM_UP = 0.25
"""Of the time, before it is measured."""


class _Sender(asyncio.Protocol):
    """One connection: a request, its answer, the next request."""

    def __init__(self, number: int, taken: list[int]) -> None:
        self._number, self._taken = number, taken
        self._sent = 0
        self._transport: asyncio.Transport | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Send the first request."""
        assert isinstance(transport, asyncio.Transport)
        self._transport = transport
        self._send()

    def data_received(self, data: bytes) -> None:
        """Count an answer once it is whole, and send the next request."""
        if data.startswith(b"HTTP/1.1 ") and data[9:12] != b"200":
            raise ValueError(f"a request was not taken: {data[:200]!r}")
        if data.endswith(b"}"):
            self._taken[0] += 1
            self._send()

    def _send(self) -> None:
        assert self._transport is not None
        body = BODY % (self._number * 1_000_000 + self._sent, self._sent % 1000)
        self._sent += 1
        head = b"POST /in HTTP/1.1\r\nHost: localhost\r\nContent-Length: %d\r\n\r\n" % len(body)
        self._transport.write(head + body)


async def send(port: int, connections: int, seconds: float) -> float:
    """Return how many requests were taken a second, after the warm-up."""
    taken, loop = [0], asyncio.get_running_loop()
    for number in range(connections):
        await loop.create_connection(lambda n=number: _Sender(n, taken), "127.0.0.1", port)
    await asyncio.sleep(seconds * WARM_UP)
    before, start = taken[0], time.monotonic()
    await asyncio.sleep(seconds * (1 - WARM_UP))
    return (taken[0] - before) / (time.monotonic() - start)


if __name__ == "__main__":
    given = int(sys.argv[1]), int(sys.argv[2]), float(sys.argv[3])
    sys.stdout.write(json.dumps({"requests_per_s": asyncio.run(send(*given))}))
