"""Dead letters go through their pipeline again from Dagster's page."""
# pyright: basic

import pytest

from kaflow_dagster.build import build_kaflow_defs
from kaflow_engine.connectors.kafka.admin import create_topic
from kaflow_engine.connectors.kafka.client import KafkaSettings, open_producer
from kaflow_engine.connectors.kafka.read import read_all
from kaflow_engine.model.letters import ABOUT, PREFIX

pytestmark = pytest.mark.kafka

FILE = """
name: orders
query: SELECT id FROM {topic}
output: {{topic: {topic}_out, key: id}}
dead_letters: {{topic: {topic}_dead}}
topics: {{{topic}: {{columns: {{id: VARCHAR}}}}}}
"""


class World:
    def __init__(self, broker, folder, topic):
        self.kafka, self.topic = KafkaSettings.of([broker.bootstrap]), topic
        create_topic(self.kafka, topic, 1)
        create_topic(self.kafka, f"{topic}_dead", 1)
        producer = open_producer(self.kafka).api
        for offset, phase in enumerate(("decode", "sql", "sql")):
            about = ("orders", topic, "0", str(offset), "1767225600000", phase, "Error", "no", "1")
            headers = [("own", b"x")]
            headers += [(f"{PREFIX}{n}", v.encode()) for n, v in zip(ABOUT, about, strict=True)]
            producer.produce(f"{topic}_dead", b"%d" % offset, b"k", 0, headers=headers)
        assert producer.flush(30) == 0
        folder.joinpath("p.yaml").write_text(FILE.format(topic=topic))
        folder.joinpath("kaflow.yaml").write_text(f"kafka: {{brokers: ['{broker.bootstrap}']}}")
        defs = build_kaflow_defs([folder / "p.yaml"], folder / "kaflow.yaml")
        self.assets = {spec.key for spec in defs.resolve_all_asset_specs()}
        self.job = defs.get_repository_def().get_job("redrive__orders")

    def run(self, **options):
        config = {"ops": {"dead_letters__orders": {"config": options}}}
        done = self.job.execute_in_process(run_config=config, raise_on_error=False)
        for event in done.all_events:
            if event.is_step_materialization:
                found = event.step_materialization_data.materialization
                assert found.asset_key in self.assets
                return done.success, {
                    k: getattr(v, "records", v.value) for k, v in found.metadata.items()
                }
        return done.success, str(done.all_events)

    def sent(self):
        return read_all(self.kafka, self.topic).column("value").to_pylist()


@pytest.fixture
def world(broker, tmp_path, unique):
    return World(broker, tmp_path, f"t{unique}")


def test_dead_letters_are_redriven_by_a_job(world):
    passed, found = world.run(dry_run=True)
    assert passed
    assert (found["kaflow/redriven"], found["kaflow/left"], found["kaflow/letters"]) == (0, 3, 3)
    assert world.sent() == []
    passed, found = world.run(where="phase = 'sql'")
    assert passed
    assert (found["kaflow/redriven"], found["kaflow/left"]) == (2, 0)
    reasons = [record.data for record in found["kaflow/reasons"]]
    assert {"phase": "sql", "error": "Error", "letters": 2} in reasons
    assert world.sent() == [b"1", b"2"]
    assert world.run()[1]["kaflow/redriven"] == 1
    assert world.sent() == [b"1", b"2", b"0"]


def test_a_condition_that_cannot_be_read_fails_the_run(world):
    passed, events = world.run(where="phse = 1")
    assert not passed
    assert "cannot read the condition" in events
