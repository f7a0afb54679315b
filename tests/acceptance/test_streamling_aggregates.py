"""`postgres_aggregate` on Spark, Kafka and Postgres: what SQL says of the rows that are left.

Rows come, change, move to other groups and go: 4,000 changes, or as many as `KAFLOW_CHANGES` says.
"""
# pyright: basic

import json
import os
import random
from pathlib import Path

import duckdb
import psycopg
import pyarrow as pa
import pytest
import yaml

from kaflow_engine.connectors.kafka.client import open_producer
from kaflow_engine.model.config import Config
from kaflow_engine.plan.planner.project import load_checked
from kaflow_engine.runtime.planning.prepare import prepare
from tests.acceptance.kafka_cases import new_topic

pytestmark = [pytest.mark.spark, pytest.mark.kafka, pytest.mark.services]

CHANGES = int(os.environ.get("KAFLOW_CHANGES", "4000"))
MARKETS, SEED = 40, 19
FIXTURES = Path(__file__).parents[1] / "fixtures" / "streamling"
PARTS = {row["title"]: row for row in yaml.safe_load((FIXTURES / "parts.yaml").read_text("utf-8"))}
BESIDE = """\
  extremes:
    type: postgres_aggregate
    from: trades
    schema: {schema}
    landing_table: extreme_log
    agg_table: extremes
    primary_key: trade_id
    group_by: {{market: {{type: text}}}}
    aggregate:
      lowest: {{from: price, fn: min}}
      highest: {{from: price, fn: max}}
      priced: {{from: price, fn: count}}
  totals:
    type: postgres_aggregate
    from: trades
    schema: {schema}
    landing_table: total_log
    agg_table: totals
    primary_key: trade_id
    aggregate:
      trades: {{fn: count}}
      volume: {{from: volume, fn: sum}}
"""
STATS = """
    SELECT market, count(*), sum(volume)::DOUBLE, sum(price), count(price)
    FROM rows GROUP BY market ORDER BY market
"""
EXTREMES = "SELECT market, min(price), max(price), count(price) FROM rows GROUP BY 1 ORDER BY 1"
TOTALS = "SELECT 'all', count(*), sum(volume) FROM rows"


def changes():
    """Yield operations on trades: about a third each inserts, updates and deletes."""
    chance, there, number = random.Random(SEED), {}, 0
    for _ in range(CHANGES):
        operation = chance.choice("cccuuudd") if len(there) > MARKETS else "c"
        if operation == "c":
            number += 1
        trade = number if operation == "c" else chance.choice([*there])
        row = {
            "trade_id": trade,
            "market": f"m{chance.randrange(MARKETS)}",
            "volume": float(chance.randrange(1, 1000)),
            "price": None if chance.random() < 0.1 else chance.randrange(1, 400) / 4,
        }
        if operation == "d":
            row = there.pop(trade)
        else:
            there[trade] = row
        yield operation, row


def folded(found):
    rows = {}
    for operation, row in found:
        if operation == "d":
            del rows[row["trade_id"]]
        else:
            rows[row["trade_id"]] = row
    return [*rows.values()]


def test_it_is_what_sql_says(broker, postgres, spark, tmp_path, unique):
    from kaflow_engine.runtime.application import run_pipelines

    new_topic(broker.settings, f"{unique}.trades", 2)
    producer, found = open_producer(broker.settings).api, [*changes()]
    for number, (operation, row) in enumerate(found):
        headers = [("dbz.op", operation.encode())]
        producer.produce(f"{unique}.trades", json.dumps(row), str(row["trade_id"]), headers=headers)
        if number % 10_000 == 0:
            producer.flush()
    assert producer.flush(60) == 0
    row = PARTS["several aggregates"]
    part = row["part"].replace("schema: trading", f"schema: {unique}")
    text = row["rest"].replace("in.trades", f"{unique}.trades") + part
    path = tmp_path / f"{unique}.yaml"
    path.write_text(text + BESIDE.format(schema=unique))
    config = Config.model_validate(
        {
            "kafka": {"brokers": broker.bootstrap},
            "state": {"rocksdb": {"path": str(tmp_path / "state")}},
            "spark": {"master": "local[2]"},
            "max_records": max(CHANGES // 5, 800),
            "postgres": {"connections": {"postgres_sink": {"url": postgres.url}}},
        }
    )
    planned = prepare(load_checked([path], config, {}).pipelines, config)
    run_pipelines([each.plan for each in planned], config, until_caught_up=True, spark=spark)
    left = folded(found)
    assert len(left) > MARKETS
    rows = pa.Table.from_pylist(left)
    with duckdb.connect() as session, psycopg.connect(postgres.url) as connection:
        session.register("rows", rows)
        for asked, columns, table in (
            (
                STATS,
                "market, trade_count, total_volume::float8, avg_price_sum, avg_price_count",
                "market_stats",
            ),
            (EXTREMES, "market, lowest, highest, priced", "extremes"),
            (TOTALS, "key, trades, volume", "totals"),
        ):
            written = connection.execute(f"SELECT {columns} FROM {unique}.{table} ORDER BY 1")
            assert written.fetchall() == session.execute(asked).fetchall(), table
        columns = "trade_id, _gs_op, market, volume, _gs_checkpoint_epoch"
        landed = connection.execute(f"SELECT {columns} FROM {unique}.total_log").fetchall()
    last = {
        (row["trade_id"], "i" if operation == "c" else operation): (row["market"], row["volume"])
        for operation, row in found
    }
    assert {(trade, op): (market, volume) for trade, op, market, volume, _ in landed} == {
        (trade, op): last[trade, op] for trade, op, *_ in landed
    }
    epochs = {epoch for *_, epoch in landed}
    assert max(epochs) - min(epochs) == 1
