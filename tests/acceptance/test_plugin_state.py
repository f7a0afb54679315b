"""What a plugin learns is committed with the batch: a real run, killed at a step of the protocol.

`tests/engine/plugins/test_state.py` tries every step without Spark, `KAFLOW_KILLS=all` more here.
"""
# pyright: basic

import json
from pathlib import Path

import pytest

from kaflow_engine.model.config import Config
from kaflow_engine.model.specs import PipelineSpec
from kaflow_engine.state.log.batch_log import BatchLog
from kaflow_engine.state.storage.store import LocalStore
from tests.acceptance.kills import share
from tests.acceptance.run_child import killed_at, ran
from tests.conftest import FROZEN_PLUGIN_2

pytestmark = [pytest.mark.spark]

FILES, ROWS, GROUPS = 4, 30, 3
KILLS = [
    ("batch_logged", 2),
    ("mapped", 2),
    ("before_commit_log", 1),
    ("before_commit_log", 3),
    ("commit_logged", 2),
]


@pytest.fixture
def config(tmp_path):
    return Config.model_validate(
        {
            "kafka": {"brokers": "127.0.0.1:9"},
            "state": {"rocksdb": {"path": str(tmp_path / "state")}},
            "spark": {"master": "local[2]"},
            "max_records": 25,
        }
    )


@pytest.fixture
def spec(tmp_path, unique):
    folder = tmp_path / "in"
    folder.mkdir()
    for number in range(FILES):
        rows = range(number * ROWS, (number + 1) * ROWS)
        lines = [json.dumps({"g": f"g{n % GROUPS}", "n": n}) for n in rows]
        folder.joinpath(f"{number}.json").write_text("\n".join(lines) + "\n")
    return PipelineSpec.model_validate(
        {
            "name": unique,
            "sources": {
                "t": {
                    "type": "files",
                    "path": str(folder),
                    "format": "json",
                    "settle": 0,
                    "columns": {"g": "VARCHAR", "n": "BIGINT"},
                }
            },
            "relations": {
                "seen": {
                    "type": "frozen.highest",
                    "from": "t",
                    "options": {"group": "g", "value": "n"},
                }
            },
            "outputs": [
                {
                    "query": "SELECT g, n, highest_before FROM seen",
                    "type": "frozen.tallied",
                    "name": "rows",
                    "options": {"file": str(tmp_path / "rows.jsonl")},
                }
            ],
        }
    )


@pytest.mark.parametrize("place", share(KILLS, 1), ids=str)
def test_each_row_is_learned_once(config, spec, tmp_path, place):
    killed_at(*place, spec, config, packages=[FROZEN_PLUGIN_2])
    ran(spec, config, packages=[FROZEN_PLUGIN_2])
    commit = BatchLog(LocalStore(Path(config.state.rocksdb.path) / spec.name)).last_commit()
    found = {name.split(":", 2)[1]: values for name, values in commit.states.items()}
    every = FILES * ROWS
    assert found["frozen.highest"] == {
        f"g{g}": {"highest": every - GROUPS + g, "rows": every // GROUPS} for g in range(GROUPS)
    }
    assert found["frozen.tallied"] == {"rows": every}
    lines = tmp_path.joinpath("rows.jsonl").read_text().splitlines()
    written = [json.loads(line) for line in lines]
    known = {}
    for each in written:  # a batch that ran again has written what it had written
        row = each["row"]
        made = known.setdefault(row["n"], (row["highest_before"], each["before"]))
        assert made == (row["highest_before"], each["before"])
    assert sorted(known) == [*range(every)]
    assert {n: before for n, (_, before) in known.items()} == {
        n: len([m for m in known if known[m][1] < before]) for n, (_, before) in known.items()
    }
