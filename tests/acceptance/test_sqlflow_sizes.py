"""Four examples of SQLFlow at the sizes of its own cases (ST25), run by one command: rows are
counted, where `test_sqlflow_examples.py` compares them."""
# pyright: basic

import json
from collections import Counter

import duckdb
import pytest

from kaflow_engine.model.config import Config
from kaflow_engine.model.configuration.with_brought import with_brought
from kaflow_engine.plan.planner.project import load_checked
from kaflow_engine.runtime.planning.prepare import prepare
from tests.acceptance.test_sqlflow import produce
from tests.acceptance.test_sqlflow_examples import CITIES, EXAMPLES, STATES, lake
from tests.committed import read_committed

pytestmark = [pytest.mark.spark, pytest.mark.kafka, pytest.mark.services]
__all__ = ["lake"]

RUN = 1000
SIZES = {"parquet": 2 * RUN, "iceberg": 5 * RUN, "csv.join": RUN, "enrich": RUN}
"""Messages of each, by example."""


def message(number):
    """Return a message; all of a topic are of one hour."""
    city = CITIES[number % 2]
    ts = f"2025-01-18T00:{number // 60 % 60:02}:{number % 60:02}Z"
    return {"event": "search", "properties": {"city": city}, "amount": number, "ts": ts}


def test_each_example_at_its_size(broker, lake, spark, tmp_path, unique, monkeypatch):
    from kaflow_engine.runtime.application import run_pipelines

    monkeypatch.chdir(tmp_path)
    (tmp_path / "out").mkdir()
    (tmp_path / "states.csv").write_text("city,state\n" + "".join(f"{c},{s}\n" for c, s in STATES))
    paths = []
    for file in EXAMPLES:
        if (count := SIZES.get(file.stem)) is not None:
            topic = f"{unique}-{count}"
            text = file.read_text().replace("{{ SQLFLOW_UNIQUE }}-events", topic)
            path = tmp_path / file.name
            path.write_text(text.replace("batch_size: 40", f"batch_size: {RUN}"))
            paths.append(path)
    for count in {*SIZES.values()}:
        broker.create_topic(f"{unique}-{count}")
        produce(broker, f"{unique}-{count}", [json.dumps(message(n)) for n in range(count)])
    config = Config.model_validate(
        {
            "state": {"rocksdb": {"path": str(tmp_path / "state")}},
            "spark": {"master": "local[2]"},
            "max_records": RUN,  # a batch of Spark is a run, and so a file
            "sql": {"read": [str(tmp_path)]},
            "command": {"connections": {"default": {"folders": [str(tmp_path / "out")]}}},
            "iceberg": {"connections": {"lake": lake[0]}},
        }
    )
    environment = {
        "SQLFLOW_KAFKA_BROKERS": broker.bootstrap,
        "SQLFLOW_UNIQUE": unique,
        "SQLFLOW_FOLDER": str(tmp_path / "out"),
    }
    specs = load_checked(paths, config, environment).pipelines
    assert {spec.name.removeprefix(f"{unique}-") for spec in specs} == {*SIZES}
    config = with_brought(config, specs)
    plans = [planned.plan for planned in prepare(specs, config)]
    summary = run_pipelines(plans, config, until_caught_up=True, spark=spark)
    assert {each.ending for each in summary.pipelines.values()} == {"caught up"}

    files = [*(tmp_path / "out").glob("*.parquet")]
    counts = [duckdb.execute(f"SELECT num_records FROM '{each}'").fetchall() for each in files]
    assert counts == [[(RUN,)], [(RUN,)]]
    rows = lake[1]().to_pylist()
    assert Counter(row["city"] for row in rows) == {city: 5 * RUN // 2 for city in CITIES}

    def values(name):
        rows = read_committed(broker.settings, f"{unique}-{name}").to_pylist()
        return [json.loads(row["value"]) for row in rows]

    joined = [(each["city"], each["state"]) for each in values("csv.join")]
    assert Counter(joined) == {each: RUN // 2 for each in STATES}
    assert [each["nested_city"]["something"] for each in values("enrich")] == [
        CITIES[n % 2] for n in range(RUN)
    ]
