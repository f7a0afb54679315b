"""Where dead letters go: a topic, or files where a pipeline uses no topic."""

from pathlib import Path
from typing import Any

import pytest
import yaml

from kaflow_engine.errors import Location, ModelError
from kaflow_engine.model.config import Config
from kaflow_engine.model.pipelines.loader import pipeline_from_mapping
from kaflow_engine.model.specs import PipelineSpec
from kaflow_engine.plan.planner.inputs.kafka_topics import dead_letter_topic
from kaflow_engine.plan.planner.pipeline_plan import check_pipeline
from kaflow_engine.plan.planner.project import check_project

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


def test_a_topic_of_dead_letters_may_be_read_where_they_go_into_files() -> None:
    given: dict[str, Any] = {
        "name": "p",
        "query": 'SELECT id FROM "p.dead_letters"',
        "topics": {"p.dead_letters": {"columns": {"id": "BIGINT"}}},
        "output": {"topic": "o"},
    }
    with pytest.raises(ModelError, match="where its dead letters go"):
        check_pipeline(pipeline_from_mapping(given, Location("p.yaml")), Config())
    apart = {**given, "dead_letters": {"type": "files"}}
    check_pipeline(pipeline_from_mapping(apart, Location("p.yaml")), Config())


@pytest.mark.parametrize(("said", "mistakes"), [({}, 1), ({"dead_letters": {"type": "files"}}, 0)])
def test_another_pipeline_may_write_it_then(
    tmp_path: Path, said: dict[str, Any], mistakes: int
) -> None:
    topics = {"t": {"columns": {"id": "BIGINT"}}}
    for name, topic, more in (("a", "b.dead_letters", {}), ("b", "o", said)):
        given = {"name": name, "query": "SELECT id FROM t", "output": {"topic": topic}}
        text = yaml.safe_dump({**given, "topics": topics, **more})
        (tmp_path / f"{name}.yaml").write_text(text)
    assert len(check_project([tmp_path]).mistakes) == mistakes
