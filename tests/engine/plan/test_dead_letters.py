"""Where dead letters go: a topic, or files where a pipeline uses no topic."""

from typing import Any

import pytest

from kaflow_engine.model.specs import PipelineSpec
from kaflow_engine.plan.planner.inputs.kafka_topics import dead_letter_topic

FILES = {"clicks": {"type": "files", "path": "in", "columns": {"id": "BIGINT"}}}
QUERY = "SELECT id FROM clicks"


@pytest.mark.parametrize(
    ("more", "topic"),
    [
        ({"outputs": [{"query": QUERY, "type": "console"}]}, None),
        ({"query": QUERY, "output": {"table": "rows", "partition": "day"}}, None),
        ({"query": QUERY, "output": {"topic": "rows"}}, "p.dead_letters"),
        (
            {
                "outputs": [{"query": QUERY, "type": "console"}],
                "dead_letters": {"topic": "broken"},
            },
            "broken",
        ),
        (
            {
                "query": "SELECT c.id FROM clicks c LEFT JOIN users u ON c.id = u.id",
                "output": {"table": "rows", "partition": "day"},
            },
            "p.dead_letters",
        ),
    ],
    ids=["console", "table", "topic", "named", "a topic is joined"],
)
def test_dead_letters_go(more: dict[str, Any], topic: str | None) -> None:
    spec = PipelineSpec.model_validate({"name": "p", "sources": FILES, **more})
    assert dead_letter_topic(spec) == topic
