"""CN12: a data source for PySpark from PyPI, killed while rows come: each of them once.

`KAFLOW_KILLS=all` for more kills and rows.
"""
# pyright: basic

import json
import os
import signal
import threading
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import parse_qs, urlsplit

import pytest

from bench.measure.product import Product
from tests.acceptance.kills import ALL

pytestmark = pytest.mark.spark

KILLS = 8 if ALL else 1
ROWS = 200_000 if ALL else 20_000
MOST = 12_000
"""Rows of an answer: more than are written down at once."""


@contextmanager
def numbers():
    """Answer GET /?since=n with the rows behind n, up to as many as are there."""

    class Answer(BaseHTTPRequestHandler):
        there = ROWS // 4

        def do_GET(self):
            since = int(parse_qs(urlsplit(self.path).query)["since"][0])
            end = min(Answer.there, since + MOST)
            rows = [{"id": n, "name": f"n{n}"} for n in range(since + 1, end + 1)]
            body = json.dumps({"items": rows}).encode()
            self.send_response(200)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *about):
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Answer) as server:
        thread = threading.Thread(target=server.serve_forever, daemon=True)
        thread.start()
        yield f"http://127.0.0.1:{server.server_port}/", Answer
        server.shutdown()
        thread.join()


def test_each_row_is_there_once(tmp_path, unique):
    product = Product(
        folder=tmp_path / "run",
        brokers="127.0.0.1:9",
        settings={"plugins.pyspark:rest_api.module": "spark_rest_api_reader"},
    )
    files = product.folder / "warehouse" / "numbers"

    journal = product.state / ".journals" / unique / "items"

    def written():
        return sum(file.stat().st_size for file in journal.glob("*.frames"))

    def found():
        rows = [line for file in files.glob("*.json") for line in file.read_text().splitlines()]
        return sorted(json.loads(line)["id"] for line in rows)

    with numbers() as (url, answer):
        product.write(
            f"""\
name: {unique}
query: SELECT id, name FROM items
output: {{type: files, folder: numbers, format: json, interval: 0s}}
sources:
  items:
    type: pyspark:rest_api
    options:
      url: {url}
      records_path: items
      stream_cursor_field: id
      stream_cursor_param: since
      stream_initial_value: "0"
      stream_cursor_is_numeric: true
    columns: {{id: BIGINT, name: VARCHAR}}
    interval: 100ms
"""
        )
        for kill in range(KILLS):
            goal = kill * ROWS // (KILLS + 2)  # the first one before Spark is there
            with product:
                product.until(lambda goal=goal: written() and len(found()) >= goal)
                os.kill(product.pid, signal.SIGKILL)
            answer.there = max(answer.there, 2 * goal)
        answer.there = ROWS
        with product:
            product.until(lambda: len(found()) >= ROWS)
        assert found() == list(range(1, ROWS + 1))
