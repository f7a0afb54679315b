"""CN5: a table of a database into Postgres as a job that is killed, and ends with 0.

The table is of ClickHouse's engine (behind a few lines of HTTP), or of a real Postgres.
`KAFLOW_KILLS=all` for all rows, and a second kill.
"""
# pyright: basic

import os
import signal
import time

import psycopg
import pytest

from bench.measure.product import Product
from tests.acceptance.kills import ALL

pytestmark = [pytest.mark.spark, pytest.mark.services]

ROWS = 3_000_000 if ALL else 300_000
KILLS = 2 if ALL else 1
PATIENCE_S = 240
NO_BROKER = "127.0.0.1:9"


@pytest.mark.parametrize("kind", ["clickhouse", "postgres"])
def test_all_rows_once(kind, clickhouse, postgres, tmp_path, unique):
    settings = {"postgres.connections.default.url": postgres.url}
    if kind == "clickhouse":
        for key, value in clickhouse.connection.items():
            settings[f"clickhouse.connections.default.{key}"] = value
        clickhouse.ask(
            f"CREATE TABLE {unique} (id UInt64, u String, amount Decimal(12, 2)) "
            "ENGINE = MergeTree ORDER BY id"
        )
        clickhouse.ask(
            f"INSERT INTO {unique} SELECT number, concat('u', toString(number % 1000)), "
            f"toDecimal64(number, 2) / 100 FROM numbers({ROWS})"
        )
    product = Product(folder=tmp_path / "run", brokers=NO_BROKER, settings=settings)
    product.write(
        f"""\
name: {unique}
sources: {{archive: {{type: {kind}, table_name: {unique}, page_size: {ROWS // 10}}}}}
outputs:
  - query: SELECT id, u, amount FROM archive
    type: postgres
    table: {unique}_rows
    create: true
  - query: SELECT u, count(*) AS n FROM archive GROUP BY u
    type: postgres
    table: {unique}_counts
    key: u
    create: true
"""
    )
    with psycopg.connect(postgres.url, autocommit=True) as connection:
        if kind == "postgres":
            connection.execute(
                f"CREATE TABLE {unique} AS SELECT g - 1 AS id, 'u' || (g - 1) % 1000 AS u, "
                f"((g - 1) / 100.0)::numeric(12, 2) AS amount FROM generate_series(1, {ROWS}) g"
            )
            connection.execute(f"ALTER TABLE {unique} ADD PRIMARY KEY (id)")

        def written():
            asked = f"SELECT to_regclass('{unique}_rows')"
            if connection.execute(asked).fetchone() == (None,):
                return 0
            return connection.execute(f"SELECT count(*) FROM {unique}_rows").fetchone()[0]

        for kill in range(KILLS):
            with product:
                deadline = time.monotonic() + PATIENCE_S
                while written() <= kill * ROWS // (KILLS + 1):
                    assert product.running, product.words()
                    assert time.monotonic() < deadline, product.words()
                    time.sleep(0.05)
                os.kill(product.pid, signal.SIGKILL)
            assert written() < ROWS
        with product:
            product.wait(PATIENCE_S)  # the table ends, and so does the run, with 0
        asked = "count(*), count(DISTINCT id), sum(id), sum(amount)"
        found = connection.execute(f"SELECT {asked} FROM {unique}_rows").fetchone()
        whole = ROWS * (ROWS - 1) // 2
        assert [int(each * 100) for each in found] == [
            ROWS * 100,
            ROWS * 100,
            whole * 100,
            whole,
        ]
        counts = connection.execute(f"SELECT count(*), min(n), max(n) FROM {unique}_counts")
        assert counts.fetchone() == (1000, ROWS // 1000, ROWS // 1000)
        with product:
            product.wait(PATIENCE_S)  # and there is nothing more
        again = connection.execute(f"SELECT {asked} FROM {unique}_rows").fetchone()
        assert again == found
