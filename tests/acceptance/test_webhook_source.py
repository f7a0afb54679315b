"""CN3: requests into Postgres with no broker anywhere, while the pipeline is killed.

`KAFLOW_KILLS=all` for all kills.
"""
# pyright: basic

import os
import signal
import threading
import time
from collections import Counter

import httpx
import psycopg
import pytest

from bench.measure.product import Product
from kaflow_engine.testing.services.child import free_ports
from tests.acceptance.kills import ALL

pytestmark = [pytest.mark.spark, pytest.mark.services]

KILLS = 10 if ALL else 3
AT_ONCE = 50
REQUESTS = 10_000 if ALL else 2_500
PATIENCE_S = 240


class Senders:
    """Threads that send each request until it is answered 200; every second one has a key."""

    def __init__(self, url):
        self._url = url
        self._numbers = iter(range(REQUESTS))
        self._lock = threading.Lock()
        self.acknowledged = 0
        self.tries = Counter()
        """Of each request, how often an answer may have been lost."""
        self._threads = [threading.Thread(target=self._send, daemon=True) for _ in range(AT_ONCE)]
        for thread in self._threads:
            thread.start()

    def join(self):
        for thread in self._threads:
            thread.join(PATIENCE_S)
            assert not thread.is_alive()

    def _send(self):
        with httpx.Client(timeout=20) as client:
            while (n := self._next()) is not None:
                headers = {"Idempotency-Key": f"request {n}"} if n % 2 else {}
                while True:
                    try:
                        answer = client.post(self._url, json={"id": n}, headers=headers)
                    except httpx.ConnectError:
                        time.sleep(0.2)  # as senders do: no one listens
                        continue
                    except httpx.HTTPError:
                        self.tries[n] += 1
                        continue
                    if answer.status_code == 200:
                        break
                    assert answer.status_code in (429, 503), answer.text
                    time.sleep(0.05)
                with self._lock:
                    self.acknowledged += 1

    def _next(self):
        with self._lock:
            return next(self._numbers, None)


def test_each_request_that_was_answered_is_there_once(postgres, tmp_path, unique):
    (port,) = free_ports(1)
    product = Product(
        folder=tmp_path / "run",
        brokers="127.0.0.1:9",
        settings={"postgres.connections.default.url": postgres.url},
    )
    product.write(
        f"""\
name: {unique}
sources:
  requests: {{type: webhook, listen: "127.0.0.1:{port}", path: /in, columns: {{id: BIGINT}}}}
outputs:
  - query: SELECT id, id % 7 AS rest FROM requests
    type: postgres
    table: {unique}_rows
    create: true
  - query: SELECT id % 7 AS rest, count(*) AS n FROM requests WHERE id % 2 = 1 GROUP BY id % 7
    type: postgres
    table: {unique}_counts
    key: rest
    create: true
"""
    )
    expected = Counter(n % 7 for n in range(1, REQUESTS, 2))
    senders = Senders(f"http://127.0.0.1:{port}/in")
    for kill in range(KILLS):
        goal = (kill + 1) * REQUESTS // (KILLS + 2)
        with product:
            product.until(lambda goal=goal: senders.acknowledged >= goal and product.live)
            os.kill(product.pid, signal.SIGKILL)
    with product, psycopg.connect(postgres.url, autocommit=True) as connection:

        def found():
            asked = f"SELECT id, count(*), max(rest) FROM {unique}_rows GROUP BY id"
            return {n: (times, rest) for n, times, rest in connection.execute(asked).fetchall()}

        def counts():
            return dict(connection.execute(f"SELECT rest, n FROM {unique}_counts").fetchall())

        senders.join()
        assert senders.acknowledged == REQUESTS
        product.until(lambda: len(found()) == REQUESTS)
        rows = found()
        # Each output commits on its own: rows may be there before their counts are.
        product.until(lambda: counts() == expected)
    assert all(rest == n % 7 for n, (_, rest) in rows.items())
    keyed = {n: times for n, (times, _) in rows.items() if n % 2}
    assert set(keyed.values()) == {1}
    others = {n: times for n, (times, _) in rows.items() if not n % 2}
    assert all(1 <= times <= 1 + senders.tries[n] for n, times in others.items())
