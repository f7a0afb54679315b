import json

import pytest

from kaflow_engine.connectors.kafka.admin import create_topic, describe
from kaflow_engine.connectors.kafka.client import KafkaSettings, open_producer
from kaflow_engine.errors import Location, Problems, SourceError
from kaflow_engine.model.columns import Column
from kaflow_engine.model.config import Config
from kaflow_engine.model.pipelines.loader import pipeline_from_mapping
from kaflow_engine.runtime.planning import prepare as prepare_module
from kaflow_engine.runtime.planning.plan_codec import fingerprint
from kaflow_engine.runtime.planning.prepare import Waiting, check, plan_pipeline, prepare
from kaflow_engine.state.log.batch_log import BatchLog, StateRecord
from kaflow_engine.state.storage.store import LocalStore
from kaflow_engine.testing.services.child import free_ports


def spec(name, topic, output, select="a.id", **more):
    query = f'SELECT {select} FROM "{topic}" a'
    data = {"name": name, "query": query, "output": {"topic": output}, **more}
    return pipeline_from_mapping(data, Location(f"{name}.yaml", 1))


def config(brokers, path):
    return Config.model_validate(
        {"kafka": {"brokers": brokers}, "state": {"rocksdb": {"path": str(path)}}}
    )


def test_all_mistakes_are_told_before_a_broker_is_asked(tmp_path):
    specs = [spec("a", "t", "o", topics={"x": {}}), spec("b", "t", "p", topics={"y": {}})]
    with pytest.raises(Problems) as caught:
        prepare(specs, config("127.0.0.1:1", tmp_path))
    assert [error.at.file for error in caught.value.errors] == ["a.yaml", "b.yaml"]
    check([spec("a", "t", "o")])


def test_only_a_stream_waits_without_end(monkeypatch, tmp_path):
    asked = []

    def resolve(*_, endless, **more):
        asked.append(endless)
        return {"t": (Column("id", "VARCHAR"),)}

    monkeypatch.setattr(prepare_module, "resolve_columns", resolve)
    one, there = spec("a", "t", "o", topics={"t": {"wait_for": True}}), config("h:1", tmp_path)
    for waiting in (None, Waiting(milliseconds=0), Waiting(endless=True)):
        plan_pipeline(one, there, waiting=waiting)
    assert asked == [False, False, True]


def pin(path, name, schemas, plan):
    log = BatchLog(LocalStore(path / name))
    log.create_state(
        StateRecord(
            state_id="s",
            generation=1,
            partitions=1,
            created_ms=0,
            start={},
            dimension_ends={},
            schemas=schemas,
            fingerprint=fingerprint(plan),
        )
    )


def test_columns_that_the_state_holds_are_used_again(tmp_path):
    columns = {"t": {"columns": {"id": "INTEGER"}}}
    first = plan_pipeline(spec("a", "t", "o", topics=columns), config("127.0.0.1:1", tmp_path))
    pin(tmp_path, "a", {"t": {"id": "INTEGER"}}, first.plan)
    again = plan_pipeline(spec("a", "t", "o"), config("127.0.0.1:1", tmp_path))
    assert again.plan == first.plan


@pytest.mark.kafka
def test_a_query_that_wants_another_column_looks_for_it(broker, topic_name, tmp_path):
    kafka = KafkaSettings.of([broker.bootstrap])
    create_topic(kafka, topic_name, 1)
    producer = open_producer(kafka).api
    producer.produce(topic_name, json.dumps({"id": 1, "name": "x"}).encode())
    producer.flush(30)
    settings = config(broker.bootstrap, tmp_path)
    before = plan_pipeline(spec("a", topic_name, "o"), settings)
    pin(tmp_path, "a", {topic_name: {"id": "INTEGER"}}, before.plan)
    after = plan_pipeline(spec("a", topic_name, "o", select="a.id, a.name"), settings)
    assert after.schemas[topic_name] == (Column("id", "INTEGER"), Column("name", "VARCHAR"))


@pytest.mark.kafka
def test_outputs_get_the_partitions_of_the_driving_topic(broker, topic_name, tmp_path):
    kafka = KafkaSettings.of([broker.bootstrap])
    create_topic(kafka, topic_name, 3)
    out, end = f"{topic_name}.out", f"{topic_name}.end"
    declared = {"columns": {"id": "VARCHAR"}}
    chain = [
        spec(f"{topic_name}-b", out, end, topics={out: declared}),
        spec(f"{topic_name}-a", topic_name, out, topics={topic_name: declared}),
    ]
    said = []
    plans = prepare(chain, config(broker.bootstrap, tmp_path), said.append)
    assert [planned.spec for planned in plans] == chain
    assert said[0] == f"created topic '{out}' with 3 partitions"
    assert {info.partitions for info in describe(kafka, [out, end]).values()} == {3}
    assert len(said) == 4


@pytest.mark.kafka
def test_a_missing_input_is_told_with_its_place(broker, topic_name, tmp_path):
    declared = {topic_name: {"columns": {"id": "VARCHAR"}}}
    with pytest.raises(SourceError, match=f"no topic '{topic_name}'") as caught:
        prepare([spec("a", topic_name, "o", topics=declared)], config(broker.bootstrap, tmp_path))
    assert caught.value.at == Location("a.yaml", 1)


@pytest.mark.kafka
def test_a_start_that_needs_no_registry_does_without(broker, topic_name, tmp_path, caplog):
    (port,) = free_ports(1)
    there = config(broker.bootstrap, tmp_path)
    away = there.kafka.model_copy(update={"schema_registry": f"http://127.0.0.1:{port}"})
    create_topic(broker.settings, topic_name, 1)
    declared = {topic_name: {"columns": {"id": "VARCHAR"}}}
    one = spec("a", topic_name, f"{topic_name}.out", topics=declared)
    prepare([one], there.model_copy(update={"kafka": away}))
    assert f"'{topic_name}.out' has values of another format is not known: the sch" in caplog.text
