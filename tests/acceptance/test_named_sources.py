"""Sources that are no topics, on Spark and Kafka: each record once, whatever happens."""
# pyright: basic

import json
from collections import Counter

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from kaflow_engine.connectors.kafka.read import read_all
from kaflow_engine.model.specs import PipelineSpec
from kaflow_engine.runtime.planning.prepare import prepare
from tests.acceptance.kills import share
from tests.acceptance.run_child import killed_at
from tests.acceptance.three_days import config_for

pytestmark = [pytest.mark.spark, pytest.mark.kafka]

ROWS, FILES = 60, 5
PLACES = [
    None,
    *share([("batch_logged", 2), ("mapped", 1), ("before_commit_log", 2), ("committed", 3)], 2),
]


@pytest.fixture
def folder(tmp_path):
    """Files with rows, a broken one, and one that a writer has not renamed yet."""
    found = tmp_path / "in"
    found.mkdir()
    for number in range(FILES):
        ids = range(number * ROWS, (number + 1) * ROWS)
        rows = pa.table({"id": list(ids), "u": [f"u{n % 7}" for n in ids]})
        pq.write_table(rows, found / f"{number}.parquet", row_group_size=25)
    (found / "2b.parquet").write_bytes(b"PAR1 and nothing else")
    whole = (found / "0.parquet").read_bytes()
    (found / ".7.parquet.tmp").write_bytes(whole[:50])
    return found


def spec_of(name, folder):
    return PipelineSpec.model_validate(
        {
            "name": name,
            "query": "SELECT c.id, u.name FROM clicks c LEFT JOIN users u ON c.u = u.u",
            "output": {"topic": f"{name}.out", "key": "id"},
            "sources": {
                "clicks": {
                    "type": "files",
                    "path": str(folder),
                    "columns": {"id": "BIGINT", "u": "VARCHAR"},
                    "settle": 0,
                },
                "users": {
                    "type": "generator",
                    "records": 7,
                    "rate": 1000,
                    "start": "2026-01-01T00:00:00Z",
                    "values": {
                        "n": {"distribution": "sequence"},
                        "u": {"distribution": "sequence", "prefix": "u"},
                        "name": {"distribution": "sequence", "prefix": "name of "},
                    },
                    "table": True,
                    "primary_key": ["u"],
                },
            },
        }
    )


@pytest.mark.parametrize("place", PLACES, ids=str)
def test_each_row_comes_once(broker, spark, folder, tmp_path, unique, place):
    from kaflow_engine.runtime.application import run_pipelines

    config = config_for(broker, tmp_path / "state", max_records=45)
    spec = spec_of(unique, folder)
    if place is not None:
        killed_at(*place, spec, config)
    (planned,) = prepare([spec], config)

    def run():
        summary = run_pipelines([planned.plan], config, until_caught_up=True, spark=spark)
        values = read_all(broker.settings, f"{unique}.out")["value"].to_pylist()
        return summary.pipelines[unique], [json.loads(value) for value in values]

    summary, rows = run()
    expected = [{"id": n, "name": f"name of {n % 7}"} for n in range(FILES * ROWS)]
    assert Counter(map(str, rows)) == Counter(map(str, expected))
    letters = read_all(broker.settings, planned.plan.dead_letter_topic)
    assert letters.num_rows == summary.counters["dead_letter"] == 1
    headers = {h["key"]: h["value"].decode() for h in letters["headers"].to_pylist()[0]}
    assert headers["kaflow.from"] == str(folder / "2b.parquet")
    assert headers["kaflow.phase"] == "read"
    assert "2b.parquet cannot be read" in headers["kaflow.message"]

    (folder / ".7.parquet.tmp").write_bytes((folder / "0.parquet").read_bytes())
    (folder / ".7.parquet.tmp").rename(folder / "7.parquet")
    _, rows = run()  # the name says when it is whole, and the others are not read again
    again = Counter(map(str, [*expected, *expected[:ROWS]]))
    assert Counter(map(str, rows)) == again
