"""Pipelines that use no topic need no broker: runs and dead letters are kept in files."""
# pyright: basic

import json
import shutil
from collections import Counter
from dataclasses import replace
from pathlib import Path

import psycopg
import pytest
from click.testing import CliRunner

from kaflow_engine.cli.main import kaflow
from kaflow_engine.connectors.local.letters import local_letters
from kaflow_engine.errors import StateError, TakenOver
from kaflow_engine.model.config import Config
from kaflow_engine.model.specs import PipelineSpec
from kaflow_engine.runtime.planning.prepare import prepare
from kaflow_engine.runtime.sink.bookkeeping import local_folder, refuse_moved, run_log_of
from kaflow_engine.state.log.batch_log import BatchLog
from kaflow_engine.state.storage.store import LocalStore
from tests.acceptance.kills import peace_or
from tests.acceptance.run_child import killed_at

pytestmark = [pytest.mark.spark, pytest.mark.services]

NO_BROKER = "127.0.0.1:9"
FILES, ROWS, USERS = 4, 30, 7
IDS = range(FILES * ROWS)
BROKEN = range(0, FILES * ROWS, 25)
KILLS = [
    ("batch_logged", 2),
    ("letters_written", 1),
    ("before_changes", 3),
    ("before_commit", 2),
    ("before_commit_log", 2),
    ("commit_logged", 3),
]


@pytest.fixture
def folder(tmp_path):
    """Files of which some lines are broken."""
    found = tmp_path / "in"
    found.mkdir()
    for number in range(FILES):
        lines = []
        for n in IDS[number * ROWS : (number + 1) * ROWS]:
            lines.append(json.dumps({"id": n, "u": f"u{n % USERS}"}))
            if n in BROKEN:
                lines.append("{")
        (found / f"{number}.json").write_text("\n".join(lines) + "\n")
    return found


def spec_of(name, folder):
    """Plan rows, and counts that are updated, into Postgres."""
    return PipelineSpec.model_validate(
        {
            "name": name,
            "outputs": [
                {
                    "query": "SELECT id, u FROM clicks WHERE id > 4",
                    "type": "postgres",
                    "table": f"{name}_rows",
                    "create": True,
                },
                {
                    "query": "SELECT u, count(*) AS n FROM clicks GROUP BY u",
                    "type": "postgres",
                    "table": f"{name}_counts",
                    "key": "u",
                    "create": True,
                },
            ],
            "sources": {
                "clicks": {
                    "type": "files",
                    "path": str(folder),
                    "format": "json",
                    "settle": 0,
                    "columns": {"id": "BIGINT", "u": "VARCHAR"},
                }
            },
        }
    )


@pytest.fixture
def config(tmp_path, postgres):
    return Config.model_validate(
        {
            "kafka": {"brokers": NO_BROKER},
            "state": {"rocksdb": {"path": str(tmp_path / "state")}},
            "spark": {"master": "local[2]"},
            "max_records": 25,
            "postgres": {"connections": {"default": {"url": postgres.url}}},
        }
    )


def rows_of(postgres, query):
    with psycopg.connect(postgres.url) as connection:
        return Counter(connection.execute(query).fetchall())


def run(spec, config, spark):
    from kaflow_engine.runtime.application import run_pipelines

    (planned,) = prepare([spec], config)
    summary = run_pipelines([planned.plan], config, until_caught_up=True, spark=spark)
    return planned.plan, summary.pipelines[spec.name]


@pytest.mark.parametrize("place", peace_or(KILLS, 1), ids=str)
def test_rows_and_dead_letters_are_there_once(spark, postgres, config, folder, unique, place):
    spec = spec_of(unique, folder)
    if place is not None:
        killed_at(*place, spec, config)
    plan, summary = run(spec, config, spark)
    assert plan.dead_letter_topic is None
    rows = rows_of(postgres, f"SELECT id, u FROM {unique}_rows")
    assert rows == Counter((n, f"u{n % USERS}") for n in IDS if n > 4)
    counts = rows_of(postgres, f"SELECT u, n FROM {unique}_counts")
    assert counts == Counter(Counter(f"u{n % USERS}" for n in IDS).items())
    letters = local_letters(local_folder(config, unique))
    assert [letter.value for letter in letters] == [b"{"] * len(BROKEN)
    assert len({letter.letter for letter in letters}) == summary.counters["dead_letter"]
    (folder / "later.json").write_text(json.dumps({"id": 1000, "u": "u0"}) + "\n")
    run(spec, config, spark)
    assert rows_of(postgres, f"SELECT id FROM {unique}_rows WHERE id > 999") == {(1000,): 1}


def test_a_run_that_was_replaced_ends(spark, config, folder, unique):
    plan, _ = run(spec_of(unique, folder), config, spark)
    with run_log_of(config, plan) as log:
        state = next(iter(log.states()))
        log.start_run(*state)
        plan, _ = run(spec_of(unique, folder), config, spark)  # takes the next epoch
        with pytest.raises(TakenOver, match=r"another run of pipeline .* has taken over: run 3"):
            log.require_newest()


def test_a_state_that_was_removed_by_hand(spark, config, folder, unique):
    run(spec_of(unique, folder), config, spark)
    shutil.rmtree(Path(config.state.rocksdb.path) / unique)
    with pytest.raises(StateError, match="has delivered rows"):
        run(spec_of(unique, folder), config, spark)


def test_an_open_batch_is_finished_where_it_was_begun(spark, config, folder, unique):
    spec = spec_of(unique, folder)
    killed_at("before_commit_log", 2, spec, config)
    (planned,) = prepare([spec], config)
    log = BatchLog(LocalStore(Path(config.state.rocksdb.path) / unique))
    refuse_moved(log, planned.plan)
    with pytest.raises(StateError, match=r"batch 2 .* was begun when it used no topics"):
        refuse_moved(log, replace(planned.plan, dead_letter_topic="letters"))


def test_commands_need_no_broker(spark, config, folder, tmp_path, unique):
    run(spec_of(unique, folder), config, spark)
    (tmp_path / "clicks.yaml").write_text(
        f"""\
name: {unique}
sources:
  clicks:
    type: files
    path: {folder}
    format: json
    columns: {{id: BIGINT, u: VARCHAR}}
outputs:
  - {{query: "SELECT id, u FROM clicks WHERE id > 4", type: console}}
"""
    )
    (tmp_path / "kaflow.yaml").write_text(
        f"kafka: {{brokers: '{NO_BROKER}'}}\nstate: {{rocksdb: {{path: {tmp_path}/state}}}}\n"
    )

    settings = ["--config", str(tmp_path / "kaflow.yaml")]

    def call(*arguments, path=str(tmp_path / "clicks.yaml")):
        return CliRunner().invoke(kaflow, [*arguments, *settings, *filter(None, [path])])

    assert "0 mistakes" in call("validate", "--connect").output
    assert "dead letters go to files beside the state" in call("explain").output
    listed = json.loads(call("dead-letters", "list", unique, "--json").output)
    assert [each["phase"] for each in listed] == ["decode"] * len(BROKEN)
    refused = call("dead-letters", "redrive", unique)
    assert refused.exit_code == 10
    assert "reads no topics or journals to which records could be sent again" in refused.output
    dropped = call("state", "drop", unique, "--yes", path=None)
    assert dropped.exit_code == 0, dropped.output
