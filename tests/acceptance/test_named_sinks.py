"""Outputs whose kind the file names, on Spark and Kafka: console, blackhole, files, statements."""
# pyright: basic

import json
from collections import Counter
from pathlib import Path

import duckdb
import pytest

from kaflow_engine.connectors.kafka.read import read_all
from kaflow_engine.model.specs import PipelineSpec
from kaflow_engine.runtime.planning.prepare import prepare
from tests.acceptance.kills import share
from tests.acceptance.run_child import killed_at
from tests.acceptance.three_days import CLICKS, DAYS, SECOND, config_for, load

pytestmark = [pytest.mark.spark, pytest.mark.kafka]

CLICKED = range(DAYS * 144)


@pytest.fixture(scope="module")
def topics(broker):
    load(broker, "named")
    return "named"


@pytest.fixture
def config(broker, tmp_path):
    kafka, warehouse = {"brokers": broker.bootstrap}, str(tmp_path / "warehouse")
    shop = tmp_path / "shop.duckdb"
    with duckdb.connect(shop) as made:
        made.execute("CREATE TABLE clicks (id BIGINT, u VARCHAR)")
    return config_for(
        broker,
        tmp_path / "state",
        kafka=kafka,
        warehouse=warehouse,
        max_records=150,
        command={"connections": {"default": {"setup": f"ATTACH '{shop}' AS shop"}}},
    )


def spec_of(name, topics):
    clicks = f'"{topics}.clicks"'
    return PipelineSpec.model_validate(
        {
            "name": name,
            "outputs": [
                {"query": f"SELECT id, u FROM {clicks}", "type": "console", "key": "id"},
                {
                    "query": f"SELECT u, count(*) AS n FROM {clicks} GROUP BY u",
                    "type": "console",
                    "name": "counts",
                },
                {"query": f"SELECT id FROM {clicks} WHERE id < 100", "type": "blackhole"},
                {"query": f"SELECT id FROM {clicks}", "topic": f"{name}.out", "key": "id"},
                {
                    "query": f"SELECT id, u FROM {clicks}",
                    "type": "files",
                    "folder": "clicks",
                    "format": "json",
                    "partition": "day",
                    "partition_by": ["u"],
                },
                {
                    "query": f"SELECT id, u FROM {clicks}",
                    "type": "command",
                    "sql": "INSERT INTO shop.clicks SELECT id, u FROM batch",
                    "ledger": "shop.ledger",
                },
            ],
            "topics": {f"{topics}.clicks": CLICKS},
        }
    )


def rows_in_files(config):
    """Return the row of each line, with the user who names its folder, and check the days."""
    for file in sorted(Path(config.warehouse, "clicks").glob("u=*/_day=*/*.json")):
        user, day = (part.partition("=")[2] for part in file.parts[-3:-1])
        for line in file.read_text().splitlines():
            row = json.loads(line)
            assert day == f"2026-01-0{1 + row['id'] // 144}"
            yield row["id"], user


def rows_of_statements(config):
    with duckdb.connect(Path(config.warehouse).parent / "shop.duckdb", read_only=True) as shop:
        return shop.execute("FROM clicks").fetchall()


def printed_lines(capfd):
    return [json.loads(line) for line in capfd.readouterr().out.splitlines() if line[:1] == "{"]


PLACES = [None, *share([("committed", 2), ("table_taken", 2)], 1)]


@pytest.mark.parametrize("place", PLACES, ids=str)
def test_lines_rows_and_dead_letters(broker, spark, topics, config, unique, capfd, place):
    from kaflow_engine.runtime.application import run_pipelines

    spec, seen = spec_of(unique, topics), []
    if place is not None:
        killed_at(*place, spec, config)
    (planned,) = prepare([spec], config)
    capfd.readouterr()
    summary = run_pipelines(
        [planned.plan], config, until_caught_up=True, spark=spark, on_progress=seen.append
    )
    lines = printed_lines(capfd)
    printed = Counter(line["row"]["id"] for line in lines if line["output"] == "console:rows")
    if place is None:  # each line once, and nothing was printed before
        assert printed == Counter(CLICKED)
    else:
        assert set(printed) < set(CLICKED)
    last = {line["key"]: line["row"] for line in lines if line["output"] == "console:counts"}
    users = Counter(f"u{n % 7}" for n in CLICKED)
    assert last == {user: {"u": user, "n": count} for user, count in users.items()}
    if place is None:
        assert seen[-1].written["blackhole:rows"] == 100
    ids = [
        json.loads(v)["id"] for v in read_all(broker.settings, f"{unique}.out")["value"].to_pylist()
    ]
    assert Counter(ids) == Counter(CLICKED)
    users_of = Counter((n, f"u{n % 7}") for n in CLICKED)
    assert Counter(rows_in_files(config)) == users_of
    assert Counter(rows_of_statements(config)) == users_of
    assert read_all(broker.settings, planned.plan.dead_letter_topic).num_rows == 2
    assert summary.pipelines[unique].counters["dead_letter"] == 2


def test_a_backfill_prints_its_range(spark, topics, config, unique, capfd):
    from kaflow_engine.runtime.application import run_backfill, run_pipelines

    spec = PipelineSpec.model_validate(
        {
            "name": unique,
            "query": f'SELECT id FROM "{topics}.clicks"',
            "output": {"type": "console"},
            "topics": {f"{topics}.clicks": CLICKS},
        }
    )
    (planned,) = prepare([spec], config)
    run_pipelines([planned.plan], config, until_caught_up=True, spark=spark)
    capfd.readouterr()
    run_backfill(planned.plan, config, SECOND, spark=spark)
    ids = [line["row"]["id"] for line in printed_lines(capfd)]
    assert sorted(ids) == [n for n in CLICKED if 144 <= n < 288]
