"""What is shown of a pipeline with several outputs while it runs."""
# pyright: basic

from threading import Event

import pytest

from kaflow_engine.cli.live_view import latest_rows
from kaflow_engine.cli.live_view.latest_rows import follow_rows
from kaflow_engine.cli.run.running import _arrow
from kaflow_engine.connectors.kafka.follow import Seen
from kaflow_engine.model.columns import Column
from kaflow_engine.model.config import Config
from kaflow_engine.model.specs import PipelineSpec
from kaflow_engine.plan.planner.pipeline_plan import build_plan

TOPICS = [{"from": "in", "topic": "x"}, {"from": "in", "topic": "y", "format": "avro"}]
TABLE = {"from": "in", "table": "kept"}


def planned(*outputs):
    spec = PipelineSpec.model_validate({"name": "p", "outputs": outputs})
    return build_plan(spec, Config(), {"in": (Column("id", "BIGINT"),)})


ARROWS = [
    ([TABLE], "p: in -> kept (immediate, table)"),
    (TOPICS[:1], "p: in -> x (immediate, json)"),
    ([*TOPICS, TABLE], "p: in -> x, y, kept (immediate, json, avro, table)"),
]


@pytest.mark.parametrize(("outputs", "line"), ARROWS)
def test_the_line_of_a_pipeline(outputs, line):
    assert _arrow(planned(*outputs)) == line


def test_rows_of_every_topic_are_followed(monkeypatch):
    shown, seen = [], Event()

    class Follower:
        def __init__(self, settings, topics):
            self.topics = sorted(topics)

        def look(self, seconds):
            found = [Seen(topic, None, b'{"id":1}', 0) for topic in self.topics]
            return [] if seen.is_set() else found

        def close(self):
            pass

    def show(rows):
        shown.extend(rows)
        seen.set()

    monkeypatch.setattr(latest_rows, "Follower", Follower)
    plan = planned(*TOPICS[:1], {"from": "in", "topic": "z"}, TABLE)
    with follow_rows([plan], Config(), show):
        assert seen.wait(30)
    assert shown == [("x", '{"id":1}'), ("z", '{"id":1}')]
