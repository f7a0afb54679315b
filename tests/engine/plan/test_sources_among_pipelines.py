"""Sources beside topics of the same names, in a project of several pipelines."""

from pathlib import Path

from kaflow_engine.plan.explain.downstream import Reader
from kaflow_engine.plan.planner.pipeline_plan import build_plan, declared_columns
from kaflow_engine.plan.planner.project import load_checked

WRITES = """
name: writes
query: SELECT id, u AS name FROM clicks
output: {topic: named, key: id}
sources: {clicks: {type: files, path: /in, columns: {id: BIGINT, u: VARCHAR}}}
"""
READS = """
name: reads
query: SELECT n.id, c.total FROM named n JOIN clicks c ON n.name = c.name
output: {topic: clicks, key: id}
state: {dimensions: [clicks]}
topics: {clicks: {columns: {name: VARCHAR, total: BIGINT}}}
"""


def test_only_topics_connect_pipelines(tmp_path: Path) -> None:
    (tmp_path / "w.yaml").write_text(WRITES)
    (tmp_path / "r.yaml").write_text(READS.replace("{topic: clicks,", "{topic: out,"))
    project = load_checked([tmp_path])
    reads, writes = (project.pipeline(name) for name in ("reads", "writes"))
    assert reads.topic("named").columns == {"id": "BIGINT", "name": "VARCHAR"}
    columns = declared_columns(writes, "clicks")
    assert columns is not None
    plan = build_plan(writes, project.config, {"clicks": columns}).plan
    assert Reader.of("writes", plan).columns == {}
    assert project.notices == ()  # `reads` may write a topic that is called as a source is
