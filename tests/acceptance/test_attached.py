"""Tables of a database that queries look up, on Spark: each row once, whatever is killed, and a row
that somebody inserts is seen without a restart."""
# pyright: basic

import json
from collections import Counter

import psycopg
import pytest

from kaflow_engine.model.config import Config
from kaflow_engine.model.specs import PipelineSpec
from kaflow_engine.runtime.planning.prepare import prepare
from tests.acceptance.kills import share
from tests.acceptance.run_child import killed_at

pytestmark = [pytest.mark.spark, pytest.mark.services]

IDS = range(120)
KILLS = [
    ("before_changes", 2),
    ("before_commit", 2),
    ("before_commit_log", 3),
    ("batch_logged", 3),
]


def run(spec, config, spark):
    from kaflow_engine.runtime.application import run_pipelines

    (planned,) = prepare([spec], config)
    return run_pipelines([planned.plan], config, until_caught_up=True, spark=spark)


@pytest.mark.parametrize("place", share(KILLS, 1), ids=str)
def test_each_row_once_with_what_the_database_had(spark, postgres, tmp_path, unique, place):
    folder = tmp_path / "in"
    folder.mkdir()
    for number in range(4):
        lines = [json.dumps({"id": n, "u": n % 9}) for n in IDS[number * 30 : number * 30 + 30]]
        (folder / f"{number}.json").write_text("\n".join(lines) + "\n")

    def ask(*texts):
        with psycopg.connect(postgres.url, autocommit=True) as connection:
            for text in texts:
                found = connection.execute(text)
            return found.fetchall() if found.description else []

    ask(
        f"CREATE TABLE {unique}_users (u integer PRIMARY KEY, name text)",
        f"INSERT INTO {unique}_users SELECT n, 'before' FROM generate_series(0, 6) n",
    )
    spec = PipelineSpec.model_validate(
        {
            "name": unique,
            "sources": {
                "clicks": {
                    "type": "files",
                    "path": str(folder),
                    "format": "json",
                    "settle": 0,
                    "columns": {"id": "BIGINT", "u": "INTEGER"},
                },
                "users": {"type": "postgres", "table_name": f"{unique}_users", "attached": True},
            },
            "outputs": [
                {
                    "query": "SELECT c.id, u.name FROM clicks c LEFT JOIN users u ON c.u = u.u",
                    "type": "postgres",
                    "table": f"{unique}_rows",
                    "create": True,
                },
                {
                    "query": "SELECT u.name, count(*) AS n FROM clicks c JOIN users u USING (u) "
                    "GROUP BY u.name",
                    "type": "postgres",
                    "table": f"{unique}_counts",
                    "key": "name",
                    "create": True,
                },
            ],
        }
    )
    config = Config.model_validate(
        {
            "kafka": {"brokers": "127.0.0.1:9"},
            "state": {"rocksdb": {"path": str(tmp_path / "state")}},
            "spark": {"master": "local[2]"},
            "max_records": 25,
            "postgres": {"connections": {"default": {"url": postgres.url}}},
        }
    )
    killed_at(*place, spec, config)
    ask(f"UPDATE {unique}_users SET name = 'after'")
    run(spec, config, spark)
    rows = dict(ask(f"SELECT id, name FROM {unique}_rows"))
    assert len(ask(f"SELECT id FROM {unique}_rows")) == len(rows) == len(IDS)
    assert {n for n, name in rows.items() if name is None} == {n for n in IDS if n % 9 > 6}
    counts = dict(ask(f"SELECT name, n FROM {unique}_counts"))
    assert counts == Counter(name for name in rows.values() if name is not None)
    assert set(counts) == {"before", "after"}
    ask(f"INSERT INTO {unique}_users VALUES (8, 'new')")
    (folder / "later.json").write_text(json.dumps({"id": 1000, "u": 8}) + "\n")
    run(spec, config, spark)
    assert ask(f"SELECT name FROM {unique}_rows WHERE id = 1000") == [("new",)]
