"""The long examples of Lenses, from files of processors, on Spark and Kafka."""
# pyright: basic

import json
from pathlib import Path

import pytest

from kaflow_engine.connectors.kafka.admin import describe, topic_settings
from kaflow_engine.connectors.kafka.read import read_all
from kaflow_engine.flow.graph import topic_sinks
from kaflow_engine.model.project import load_project
from kaflow_engine.runtime.planning.prepare import prepare
from kaflow_engine.testing.cases.cases import run_case
from kaflow_engine.testing.cases.executor import LocalExecutor
from kaflow_engine.testing.cases.report import report_lines
from tests.acceptance.kafka_cases import AROUND, FOLDER, cases_of, config_for, load

CASES = cases_of("lenses.yaml")


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_the_local_executor_gives_the_rows(case):
    result = run_case(case, LocalExecutor(), around=AROUND)
    assert result.passed, "\n".join(report_lines(result))


@pytest.mark.spark
@pytest.mark.kafka
@pytest.mark.services
def test_processors_of_a_folder_run_side_by_side(spark, broker, tmp_path):
    from kaflow_engine.runtime.application import run_pipelines  # it imports Spark

    config = config_for(broker, tmp_path)
    for case in CASES:
        load(case, config)
    planned = prepare(load_project([Path(FOLDER / "lenses")], config).pipelines, config)
    run_pipelines([p.plan for p in planned], config, until_caught_up=True, spark=spark)
    for each in planned:
        assert read_all(broker.settings, each.plan.dead_letter_topic).num_rows == 0
    found = {}
    for sink in (sink for each in planned for sink in topic_sinks(each.plan)):
        rows = read_all(broker.settings, sink.topic).to_pylist()
        for row in sorted(rows, key=lambda row: row["offset"]):
            found[sink.topic, row["key"].decode()] = json.loads(row["value"])
    assert found == {
        (last.topic or "daily-item-purchases-stats", last.key): value
        for case in CASES
        for last, value in case.table or ()
    }
    outputs = describe(broker.settings, ["currentMerchants", "merchantsPerPlatform"])
    assert [topic.partitions for topic in outputs.values()] == [2, 3]
    policies = {
        topic: topic_settings(broker.settings, topic)["cleanup.policy"]
        for topic in ("currentMerchants", "merchantsPerPlatform", "daily-item-purchases-stats")
    }
    assert policies == {
        "currentMerchants": "delete",
        "merchantsPerPlatform": "compact",
        "daily-item-purchases-stats": "compact",
    }
