"""The long examples of Lenses, from files of processors, on Spark and Kafka."""
# pyright: basic

import json
from pathlib import Path

import pytest

from kaflow_engine.connectors.kafka.admin import create_topic, describe
from kaflow_engine.connectors.kafka.client import open_producer
from kaflow_engine.connectors.kafka.consumer_group import GroupCommitter, committed_offsets
from kaflow_engine.connectors.kafka.read import read_all
from kaflow_engine.connectors.kafka.topics import topic_settings
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


def goes_on(broker, folder):
    """Write a processor whose consumer group has read two of three records before."""
    topics = {
        "lenses.read_before": (1, 2, 3),
        "lenses.people_before": (1, 2),
        "lenses.never_read": (1,),
    }
    producer = open_producer(broker.settings).api
    for topic, numbers in topics.items():
        create_topic(broker.settings, topic, 1)
        for n in numbers:
            producer.produce(topic, json.dumps({"n": n}).encode(), "k", 0)
    assert producer.flush(30) == 0
    read = {"lenses.read_before": {0: 2}, "lenses.people_before": {0: 1}}
    GroupCommitter(broker.settings, "lenses.of_before").commit(read)
    folder.mkdir()
    folder.joinpath("goes_on.processor.sql").write_text(
        "SET auto.offset.reset='latest';\n"
        "INSERT INTO lenses.went_on SELECT STREAM SUM(n) AS n FROM lenses.read_before "
        "GROUP BY _key;\n"
        "INSERT INTO lenses.went_on_people SELECT TABLE n FROM lenses.people_before;\n"
        "INSERT INTO lenses.unread SELECT STREAM n FROM lenses.never_read;\n"
    )
    about = {
        "name": "goes_on",
        "application_id": "lenses.of_before",
        "topics": {topic: {"columns": {"n": "INTEGER"}} for topic in topics},
    }
    folder.joinpath("goes_on.processor.yaml").write_text(json.dumps(about))


@pytest.mark.spark
@pytest.mark.kafka
@pytest.mark.services
def test_processors_of_a_folder_run_side_by_side(spark, broker, tmp_path):
    from kaflow_engine.runtime.application import run_pipelines  # it imports Spark

    config = config_for(broker, tmp_path)
    for case in CASES:
        load(case, config)
    goes_on(broker, tmp_path / "more")
    folders = [Path(FOLDER / "lenses"), tmp_path / "more"]
    planned = prepare(load_project(folders, config).pipelines, config)
    run_pipelines([p.plan for p in planned], config, until_caught_up=True, spark=spark)
    for each in planned:
        assert read_all(broker.settings, each.plan.dead_letter_topic).num_rows == 0
    found = {}
    for sink in (sink for each in planned for sink in topic_sinks(each.plan)):
        rows = read_all(broker.settings, sink.topic).to_pylist()
        for row in sorted(rows, key=lambda row: row["offset"]):
            found[sink.topic, row["key"].decode()] = json.loads(row["value"])
    assert found.pop(("lenses.went_on", "k")) == {"n": 3}
    assert found.pop(("lenses.went_on_people", "k")) == {"n": 2}
    assert found == {
        (last.topic or "daily-item-purchases-stats", last.key): value
        for case in CASES
        for last, value in case.table or ()
    }
    went_on = committed_offsets(broker.settings, "lenses.of_before", {"lenses.read_before": 1})
    assert went_on == {"lenses.read_before": {0: 3}}
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
