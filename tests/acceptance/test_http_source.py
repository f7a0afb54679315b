"""URLs that are polled into Postgres, while the pipeline is killed and the server has troubles.

`KAFLOW_KILLS=all` for all kills.
"""
# pyright: basic

import os
import random
import signal
import threading

import psycopg
import pytest

from bench.measure.product import Product
from tests.acceptance.kills import ALL
from tests.engine.connectors.polled_server import Answer, answering

pytestmark = [pytest.mark.spark, pytest.mark.services]

KILLS = 10 if ALL else 3
SECRET = "never-to-be-printed"


class Shop:
    """Orders by a cursor that gives equal ones again, and a page of what changes."""

    def __init__(self):
        self.orders = 0
        self.version = 0
        self.ends = False
        self._chance = random.Random(7)
        self._lock = threading.Lock()

    def __call__(self, asked):
        assert asked.query["token"] == SECRET
        with self._lock:
            match self._chance.randrange(16):
                case 0:
                    return Answer({}, 503)
                case 1:
                    return Answer({}, 429, {"Retry-After": "0"})
                case 2:
                    return Answer({"items": [{"id": -1, "at": 10**9}]}, breaks=True)
            if asked.path == "/state":
                self.version += not self.ends
                return Answer([{"version": self.version}, {"version": 0}])
            page, size = int(asked.query.get("page", 0)), 7
            if not page and not self.ends:
                self.orders += self._chance.randrange(20)
            # three orders have one time: the cursor alone does not tell them apart
            found = [{"id": n, "at": n // 3} for n in range(self.orders)]
            behind = [each for each in found if each["at"] >= int(asked.query["since"])]
            more = f"?token={SECRET}&since={asked.query['since']}&page={page + 1}"
            last = (page + 1) * size >= len(behind)
            items = behind[page * size : (page + 1) * size]
            return Answer({"items": items, "next": None if last else more})


def test_each_record_of_a_polled_url_is_there_once(postgres, tmp_path, unique):
    shop = Shop()
    product = Product(
        folder=tmp_path / "run",
        brokers="127.0.0.1:9",
        settings={"postgres.connections.default.url": postgres.url, "secrets.api": SECRET},
    )
    with (
        answering(shop) as url,
        psycopg.connect(postgres.url, autocommit=True) as connection,
    ):
        product.write(
            f"""\
name: {unique}
sources:
  orders:
    type: http
    url: {url}/orders
    parameters: {{token: {{secret: api}}}}
    interval: 50ms
    records: items
    cursor: {{field: at, parameter: since, start: "0"}}
    next: next
    columns: {{id: BIGINT, at: BIGINT}}
  versions:
    type: http
    url: {url}/state
    parameters: {{token: {{secret: api}}}}
    interval: 50ms
    columns: {{version: BIGINT}}
outputs:
  - {{query: "SELECT id, at FROM orders", type: postgres, table: {unique}_o, create: true}}
  - {{query: "SELECT version FROM versions", type: postgres, table: {unique}_v, create: true}}
"""
        )
        for _ in range(KILLS):
            with product:
                before = shop.orders, shop.version
                product.until(
                    lambda before=before: (
                        product.live
                        and shop.orders > before[0] + 150
                        and shop.version > before[1] + 15
                    )
                )
                os.kill(product.pid, signal.SIGKILL)
        shop.ends = True

        def found(table, column):
            asked = f"SELECT {column} FROM {unique}_{table} ORDER BY 1"
            return [each for (each,) in connection.execute(asked).fetchall()]

        with product:
            product.until(lambda: product.live and shop.orders - 1 in found("o", "id"))
            product.until(lambda: shop.version in found("v", "version"))
        assert found("o", "id") == list(range(shop.orders))
        versions = found("v", "version")
    # what was asked for and not yet written down when it was killed may never come again
    assert versions == sorted(set(versions))
    assert versions[0] == 0
    assert SECRET not in (product.folder / "run.log").read_text()
