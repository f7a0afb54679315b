"""CN4: a websocket server that drops connections and fragments messages, while the pipeline is
killed: what is written down is whole, and a row once.

`KAFLOW_KILLS=all` for all kills.
"""
# pyright: basic

import json
import os
import random
import signal
import threading
import time
from contextlib import contextmanager

import psycopg
import pytest
from websockets.exceptions import ConnectionClosed
from websockets.sync.server import serve

from bench.measure.product import Product
from kaflow_engine.connectors.journal.folder import journal_folder
from kaflow_engine.connectors.journal.source import JournalSource
from kaflow_engine.errors import RunError
from tests.acceptance.kills import ALL

pytestmark = [pytest.mark.spark, pytest.mark.services]

KILLS = 8 if ALL else 3
PATIENCE_S = 240
SECRET = "never-to-be-printed"


def record(n):
    return json.dumps({"n": n, "text": f"ü{n}" * (n % 40)})


class Feed:
    """Numbered messages, each sent once; no connection lasts."""

    def __init__(self):
        self.connects = 0
        self.sent = 0
        self.refuses = self.is_quiet = False
        self._chance = random.Random(4)
        self._lock = threading.Lock()

    def handler(self, connection):
        with self._lock:
            self.connects += 1
            how = self.connects % 4
        try:
            assert connection.recv() == '{"subscribe": "all"}'
            while self.is_quiet:
                connection.recv()
            for _ in range(self._chance.randrange(5, 400)):
                time.sleep(0.002)  # as events happen
                self.send(connection, breaks=False)
            if how == 0:
                self.send(connection, breaks=True)
            elif how == 1:
                connection.socket.close()
            elif how == 2:
                connection.close(1012)
        except (ConnectionClosed, OSError):
            return

    def send(self, connection, breaks):
        with self._lock:
            text, self.sent = record(self.sent), self.sent + 1
        size = self._chance.randrange(1, 90)
        parts = (text[at : at + size] for at in range(0, len(text), size))
        connection.send(self.until_half(connection, parts) if breaks else parts)

    def until_half(self, connection, parts):
        yield next(parts)
        connection.socket.close()
        yield from parts

    def let_in(self, connection, request):
        is_ours = request.headers["Authorization"] == f"Bearer {SECRET}"
        return connection.respond(403, "no") if self.refuses or not is_ours else None


@contextmanager
def serving(feed):
    with serve(feed.handler, "127.0.0.1", 0, process_request=feed.let_in) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        try:
            yield server.socket.getsockname()[1]
        finally:
            server.shutdown()
            thread.join()


def test_each_message_that_was_written_down_is_there_once(postgres, tmp_path, unique):
    feed = Feed()
    product = Product(
        folder=tmp_path / "run",
        brokers="127.0.0.1:9",
        settings={"postgres.connections.default.url": postgres.url, "secrets.feed": SECRET},
    )
    journal = JournalSource(name="s", folder=journal_folder(product.state, unique, "s"))

    def written():
        return journal.latest()[0]

    with serving(feed) as port:
        product.write(
            f"""\
name: {unique}
sources:
  s:
    type: websocket
    url: ws://127.0.0.1:{port}/feed
    headers: {{Authorization: {{prefix: "Bearer ", secret: feed}}}}
    send: ['{{"subscribe": "all"}}']
    columns: {{n: BIGINT, text: VARCHAR}}
outputs:
  - {{query: "SELECT n, text FROM s", type: postgres, table: {unique}, create: true}}
"""
        )
        for _ in range(KILLS):
            before = feed.connects
            with product:
                at = written()
                product.until(
                    lambda at=at, before=before: (
                        product.live and feed.connects > before + 3 and written() > at + 300
                    )
                )
                os.kill(product.pid, signal.SIGKILL)
        with product:
            product.until(lambda: product.live and feed.connects > before + 8)
            feed.refuses = True
            with pytest.raises(RunError):  # what cannot heal ends it
                product.wait(PATIENCE_S)
        words = (product.folder / "run.log").read_text()
        assert f"websocket ws://127.0.0.1:{port}/feed answers 403" in words
        assert SECRET not in words
        feed.refuses, feed.is_quiet = False, True
        with product, psycopg.connect(postgres.url, autocommit=True) as connection:

            def found():
                return connection.execute(f"SELECT n, text FROM {unique} ORDER BY n").fetchall()

            product.until(lambda: product.live and len(found()) >= written())
            rows = found()
    records = journal.read(journal.start("earliest"), journal.latest())
    taken = [json.loads(value)["n"] for value in records["value"].to_pylist()]
    assert len(taken) > KILLS * 300
    assert taken == sorted(set(taken))
    assert rows == [(n, json.loads(record(n))["text"]) for n in taken]
