# pyright: basic
"""KS17 on Spark: a machine is lost with its disk, and another one goes on from the bucket."""

import logging
import re
import shutil

import duckdb
import pytest
from deltalake import DeltaTable

from kaflow_engine.connectors.kafka.read import read_all
from kaflow_engine.runtime.planning.prepare import prepare
from tests.acceptance.bucket_here import KEYS, NAME, Store
from tests.acceptance.run_child import killed_at
from tests.acceptance.three_days import config_for, load, spec_of

pytestmark = [pytest.mark.spark, pytest.mark.kafka, pytest.mark.services]


def topic_rows(broker, spec, config):
    found = read_all(broker.settings, spec.writes[0].output.topic)
    rows: dict[bytes, list[bytes]] = {}
    for key, value in zip(found["key"].to_pylist(), found["value"].to_pylist(), strict=True):
        rows.setdefault(key, []).append(value)
    return rows


def table_rows(broker, spec, config):
    found = DeltaTable(f"{config.warehouse}/{spec.writes[0].output.table}").to_pyarrow_dataset()  # noqa: F841
    return duckdb.sql("SELECT id, u, v FROM found ORDER BY ALL").fetchall()


@pytest.fixture(scope="module")
def topics(broker):
    load(broker, "kept")
    return "kept"


@pytest.mark.parametrize(
    ("side", "output", "rows"),
    [("dimension", "topic", topic_rows), ("event", "table", table_rows)],
)
def test_a_machine_is_lost(broker, spark, topics, tmp_path, caplog, side, output, rows):
    from kaflow_engine.runtime.application import run_pipelines

    found = {}
    with Store() as store:
        keys = {"accessKey": KEYS["access_key"], "secretKey": KEYS["secret_key"]}
        s3 = {"enabled": True, "bucket": NAME, "endpoint": store.endpoint, **keys}
        for name in ("unbroken", "lost"):
            to = {"table": f"kept_{name}", "interval": "1ms"} if output == "table" else None
            spec = spec_of(side, topics, name, to=to)
            state = tmp_path / name
            checkpoint = {"interval": "200ms", "s3": {**s3, "region": KEYS["region"]}}
            rocksdb = {"path": str(state), "checkpoint": checkpoint if name == "lost" else {}}
            config = config_for(
                broker,
                state,
                max_records=120,
                warehouse=str(tmp_path / "warehouse"),
                state={"rocksdb": rocksdb},
            )
            if name == "lost":
                killed_at("before_commit_log", 5, spec, config)
                shutil.rmtree(state)
            caplog.set_level(logging.INFO, "kaflow")
            (planned,) = prepare([spec], config)
            run_pipelines([planned.plan], config, until_caught_up=True, spark=spark)
            found[name] = rows(broker, spec, config)
    assert found["lost"] == found["unbroken"]
    said = re.search(r"as it was after batch (\d+) in \d+\.\d s", caplog.text)
    assert said
    assert int(said[1]) < 5, "the sink was ahead"
