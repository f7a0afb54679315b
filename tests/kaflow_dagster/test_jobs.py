"""Pipelines whose sources all end are assets that a run materializes, without a switch."""
# pyright: basic

import dagster as dg
import pytest

from kaflow_dagster.assets.views import view_project
from kaflow_dagster.build import build_kaflow_defs
from kaflow_dagster.streams import session
from kaflow_engine.api.status import Progress

pytestmark = pytest.mark.slow

ENDS = "{type: generator, records: 10, values: {id: {distribution: sequence}}}"
GOES_ON = "{type: generator, values: {id: {distribution: sequence}}}"
KEY = dg.AssetKey(["streams", "copied"])


def pipeline(source):
    return f"""
name: copied
query: SELECT id FROM made
output: {{type: blackhole}}
sources: {{made: {source}}}
"""


def defs_of(folder, text):
    (folder / "p.yaml").write_text(text)
    return build_kaflow_defs([folder])


@pytest.mark.parametrize(
    ("source", "ends"),
    [
        (ENDS, True),
        (GOES_ON, False),
        ("{type: postgres, table_name: t, columns: {id: BIGINT}}", True),
        ("{type: clickhouse, table_name: t, columns: {id: BIGINT}}", True),
        ("{type: files, path: /in, format: json, columns: {id: BIGINT}}", False),
        ("{type: webhook, listen: '127.0.0.1:1', columns: {id: BIGINT}}", False),
        (
            "{type: hybrid, columns: {id: BIGINT}, phases: [{type: files, path: /in}], topic: t, "
            "handover: {offsets: {0: 0}}}",
            False,
        ),
        ("{type: hybrid, columns: {id: BIGINT}, phases: [{type: files, path: /in}]}", True),
    ],
)
def test_what_ends(tmp_path, source, ends):
    (tmp_path / "p.yaml").write_text(pipeline(source))
    (tmp_path / "kaflow.yaml").write_text(
        "postgres: {connections: {default: {url: 'postgresql://k@db/shop'}}}\n"
        "clickhouse: {connections: {default: {url: 'https://k@db:8443/shop'}}}"
    )
    (found,) = view_project([tmp_path], tmp_path / "kaflow.yaml").pipelines
    assert found.problem is None
    assert found.ends is ends


def test_a_topic_beside_it_makes_it_a_stream(tmp_path):
    text = pipeline(ENDS).replace("SELECT id FROM made", "SELECT id FROM made UNION ALL FROM t")
    (tmp_path / "p.yaml").write_text(text + "topics: {t: {columns: {id: BIGINT}}}")
    (found,) = view_project([tmp_path]).pipelines
    assert not found.ends


@pytest.mark.parametrize(("source", "ends"), [(ENDS, True), (GOES_ON, False)])
def test_it_is_an_asset_that_runs_materialize_and_has_no_switch(tmp_path, source, ends):
    repository = defs_of(tmp_path, pipeline(source)).get_repository_def()
    assert (KEY in repository.asset_graph.materializable_asset_keys) is ends
    assert repository.has_sensor_def("supervise__copied") is not ends
    assert repository.has_job("job__copied") is ends
    assert repository.has_job("stream__copied") is not ends


def test_a_run_ends_with_the_pipeline_and_shows_its_last_report(tmp_path, monkeypatch):
    def streamed(heard, project, names, config, stop):
        assert names == ["copied"]
        heard.newest["copied"] = Progress(pipeline="copied", state="stopped", batch=3)

    monkeypatch.setattr(session, "_stream", streamed)
    job = defs_of(tmp_path, pipeline(ENDS)).resolve_job_def("job__copied")
    with dg.DagsterInstance.ephemeral() as instance:
        done = job.execute_in_process(instance=instance)
        (made,) = done.get_asset_materialization_events()
        last = instance.get_latest_materialization_event(KEY)
    assert made.asset_key == KEY
    assert last is not None
    assert last.asset_materialization is not None
    assert last.asset_materialization.metadata["kaflow/batch"].value == 3
    assert last.run_id == done.run_id


def test_one_that_fails_fails_its_run(tmp_path, monkeypatch):
    def streamed(*given):
        raise session.KaflowError("the table is gone")

    monkeypatch.setattr(session, "_stream", streamed)
    job = defs_of(tmp_path, pipeline(ENDS)).resolve_job_def("job__copied")
    with dg.DagsterInstance.ephemeral() as instance:
        done = job.execute_in_process(instance=instance, raise_on_error=False)
    assert not done.success
