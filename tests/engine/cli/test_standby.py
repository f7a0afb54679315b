"""A second `kaflow run` of the same pipelines: it waits and says so; a bounded one is refused."""

# pyright: basic

import os
import threading
from urllib.error import HTTPError
from urllib.request import urlopen

import pytest
from click.testing import CliRunner

from kaflow_engine.cli.main import kaflow
from kaflow_engine.cli.run import running
from kaflow_engine.errors import ModelError, SourceError
from kaflow_engine.state.storage.lease import Leases, find_holder

PIPELINES = {
    name: f"name: {name}\nquery: SELECT id FROM orders\noutput: {{topic: {name}.out, key: id}}\n"
    "topics: {orders: {columns: {id: VARCHAR}}}\n"
    for name in ("orders", "paid")
}


@pytest.fixture
def project(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "config.yaml").write_text("http: {port: 0}\nkafka: {brokers: '127.0.0.1:1'}\n")
    for name, text in PIPELINES.items():
        (tmp_path / f"{name}.yaml").write_text(text)
    return tmp_path


def held_by_another(project, *names):
    return Leases(project / ".kaflow" / "state", names).take()


@pytest.mark.parametrize("bound", ["--until-caught-up", "--max-records=5"])
def test_a_bounded_run_is_refused_at_once(project, bound):
    with held_by_another(project, "paid"):
        done = CliRunner().invoke(kaflow, ["run", ".", bound], prog_name="kaflow")
    assert done.exit_code == 16
    assert done.stderr.splitlines()[1:] == [
        f"error: another run holds '{project}/.kaflow/state/paid': process {os.getpid()} on "
        f"{os.uname().nodename}",
        "  hint: stop it first; the lease ends with its process",
    ]


def answers(stderr):
    """Ask a run that stands by how it is, at the address that it printed."""
    address = stderr.split("health, status and metrics at ")[1].split()[0]
    codes = {}
    for path in ("/health/live", "/health/ready"):
        try:
            codes[path] = urlopen(f"{address}{path}").status
        except HTTPError as error:
            codes[path] = error.code
    return codes, urlopen(f"{address}/status").read().decode()


def test_an_endless_run_waits_and_takes_over(project, monkeypatch, capsys):
    """Nothing is asked of a broker before, and the plan is made with the state of that moment."""
    told, found = [], []

    def look(progress):
        told.append((progress.pipeline, progress.state))
        if len(told) == 2:
            found.append(answers(capsys.readouterr().err))
            other.close()

    def planned(specs, *_):
        found.append([find_holder(project / ".kaflow" / "state" / spec.id) for spec in specs])
        raise ModelError("far enough")

    monkeypatch.setattr(running, "prepare", planned)
    specs, config = loaded(project)
    other = held_by_another(project, "paid")
    with pytest.raises(ModelError, match="far enough"):
        running.run_in_front(specs, config, running.Manner(), threading.Event(), look)
    assert told == [(name, state) for state in ("standby", "starting") for name in PIPELINES]
    (codes, status), holders = found
    assert codes == {"/health/live": 200, "/health/ready": 503}
    assert status.count('"state": "standby"') == 2
    assert f"/paid': process {os.getpid()} on " in status
    assert "takes over when that one ends" in status
    assert len(holders) == 2
    assert None not in holders
    assert find_holder(project / ".kaflow" / "state" / "orders") is None
    said = capsys.readouterr().err
    assert said.startswith("standing by: another run holds '")
    assert said.splitlines()[1:] == [
        "taking over",
        "preparing 2 pipelines with Kafka at 127.0.0.1:1",
    ]


@pytest.mark.parametrize("stage", ["on standby", "at the broker"])
def test_it_can_be_stopped_before_it_runs(project, monkeypatch, capsys, stage):
    asked = threading.Event()

    def told(progress):
        if progress.state == "standby":
            asked.set()

    def stopped(*_):
        asked.set()
        raise SourceError("no broker answers")

    monkeypatch.setattr(running, "prepare", stopped)
    specs, config = loaded(project)
    names = ["paid"] if stage == "on standby" else ["other"]
    with held_by_another(project, *names):
        running.run_in_front(specs, config, running.Manner(), asked, told)
        assert capsys.readouterr().err.endswith("stopped before anything ran\n")
    assert find_holder(project / ".kaflow" / "state" / "orders") is None


def loaded(project):
    from kaflow_engine.cli.options import configuration
    from kaflow_engine.plan.planner.project import load_checked

    config = configuration(None)
    return load_checked([project], config).pipelines, config
