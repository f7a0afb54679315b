"""Rows and changes in a Postgres table, on Spark and Kafka: each once, wherever a run is killed."""
# pyright: basic

import json
from collections import Counter

import psycopg
import pytest

from kaflow_engine.connectors.kafka.read import read_all
from kaflow_engine.errors import ModelError, SinkError
from kaflow_engine.model.specs import PipelineSpec
from kaflow_engine.runtime.drive.backfill_guard import check_backfill
from kaflow_engine.runtime.planning.prepare import prepare
from tests.acceptance.kills import peace_or
from tests.acceptance.run_child import killed_at
from tests.acceptance.three_days import CLICKS, DAYS, SECOND, config_for, load

pytestmark = [pytest.mark.spark, pytest.mark.kafka, pytest.mark.services]

CLICKED = range(DAYS * 144)
REFUSED = {100, 101, 250}
KEPT = [n for n in CLICKED if n not in REFUSED]


@pytest.fixture(scope="module")
def topics(broker):
    load(broker, "pg")
    return "pg"


@pytest.fixture
def config(broker, postgres, tmp_path):
    return config_for(
        broker,
        tmp_path / "state",
        kafka={"brokers": broker.bootstrap},
        max_records=150,
        postgres={"connections": {"default": {"url": postgres.url}}},
    )


def spec_of(name, topics):
    """Plan rows, the counts of users, also of even and odd ids apart, into tables and a topic."""
    clicks = f'"{topics}.clicks"'
    counts = (
        f"SELECT u, count(*) AS n, max(id) AS last FROM {clicks} GROUP BY u HAVING max(id) < 429"
    )
    return PipelineSpec.model_validate(
        {
            "name": name,
            "outputs": [
                {
                    "query": f"SELECT id, u FROM {clicks}",
                    "type": "postgres",
                    "table": f"{name}_rows",
                },
                {
                    "query": counts,
                    "type": "postgres",
                    "table": f"{name}_counts",
                    "key": "u",
                    "create": True,
                },
                {
                    "query": counts.replace("u, count", "u, id % 2 AS odd, count").replace(
                        "GROUP BY u", "GROUP BY u, id % 2"
                    ),
                    "type": "postgres",
                    "table": f"{name}_pairs",
                    "key": ["u", "odd"],
                    "create": True,
                },
                {"query": counts, "topic": f"{name}.counts", "key": "u"},
            ],
            "topics": {f"{topics}.clicks": CLICKS},
        }
    )


def table(postgres, asked):
    with psycopg.connect(postgres.url) as connection:
        return connection.execute(asked).fetchall()


KILLS = [("rows_produced", 2), ("before_commit", 3), ("committed", 2), ("commit_logged", 2)]
PLACES = peace_or(KILLS, 1)
"""Of two tables the first one passes a point first: behind it, the second and the topic lack its
rows."""


@pytest.mark.parametrize("place", PLACES, ids=str)
def test_each_row_is_once_and_each_count_the_last(
    broker, spark, postgres, topics, config, unique, place
):
    from kaflow_engine.runtime.application import run_pipelines

    spec = spec_of(unique, topics)
    with psycopg.connect(postgres.url) as connection:
        connection.execute(
            f"CREATE TABLE {unique}_rows (id bigint CHECK (id NOT IN (100, 101, 250)), u text, "
            "at timestamptz DEFAULT now())"
        )
    if place is not None:
        killed_at(*place, spec, config)
    (planned,) = prepare([spec], config)
    run_pipelines([planned.plan], config, until_caught_up=True, spark=spark)
    rows = table(postgres, f"SELECT id, u FROM {unique}_rows")
    assert Counter(n for n, _ in rows) == Counter(KEPT)
    assert all(user == f"u{n % 7}" for n, user in rows)
    # the fold of the topic, deletes among it, and what DuckDB would count
    records = read_all(broker.settings, f"{unique}.counts")
    folded = dict(zip(records["key"].to_pylist(), records["value"].to_pylist(), strict=True))
    last = {k.decode(): json.loads(v) for k, v in folded.items() if v is not None}
    found = {
        user: {"u": user, "n": n, "last": last_id}
        for user, n, last_id in table(postgres, f"SELECT u, n, last FROM {unique}_counts")
    }
    users = {f"u{m}": [n for n in CLICKED if n % 7 == m] for m in range(7)}
    expected = {
        user: {"u": user, "n": len(ids), "last": max(ids)}
        for user, ids in users.items()
        if max(ids) < 429
    }
    assert found == last == expected
    assert len(expected) < len(users)  # some were deleted
    halves = {
        (u, odd): [n for n in ids if n % 2 == odd] for u, ids in users.items() for odd in (0, 1)
    }
    left = {(u, odd, len(ids), max(ids)) for (u, odd), ids in halves.items() if max(ids) < 429}
    assert set(table(postgres, f"SELECT u, odd, n, last FROM {unique}_pairs")) == left
    assert 0 < len(left) < len(halves)
    # rows that the server refused are dead letters once, beside the two broken records
    letters = read_all(broker.settings, planned.plan.dead_letter_topic)["headers"].to_pylist()
    phases = Counter(
        {h["key"]: h["value"] for h in headers}["kaflow.phase"].decode() for headers in letters
    )
    assert phases == {"decode": 2, "sink": len(REFUSED)}
    ledger = table(
        postgres,
        f"SELECT count(*), count(DISTINCT slot) FROM _kaflow_ledger WHERE target = '{unique}_rows'",
    )
    assert ledger[0][0] == ledger[0][1]  # one row for each delivery partition


def test_what_does_not_fit_is_said_at_the_start(spark, postgres, topics, config, unique):
    from kaflow_engine.runtime.application import run_pipelines

    (planned,) = prepare([spec_of(unique, topics)], config)
    with pytest.raises(SinkError, match=f"there is no table '{unique}_rows'"):
        run_pipelines([planned.plan], config, until_caught_up=True, spark=spark)
    with pytest.raises(ModelError, match="a backfill cannot write to 'postgres:default"):
        check_backfill(planned.spec, config, SECOND)
