"""Pipelines in trouble: what the port says of them, and what a real Prometheus makes of it."""
# pyright: basic

import json
import subprocess
import time
from pathlib import Path
from urllib.parse import urlencode
from urllib.request import urlopen

import pytest

from bench.troubles import TROUBLES, run_troubles
from kaflow_engine.telemetry.metric_table import METRICS
from kaflow_engine.testing.child import free_ports
from tests.system import find_program

pytestmark = [pytest.mark.spark, pytest.mark.kafka, pytest.mark.services]

DEPLOY = Path(__file__).parents[2] / "deploy"
PATIENCE_S = 60.0


class Scrape:
    """What a Prometheus and its tools found at a running process."""

    def __init__(self, folder):
        self.folder = folder
        self.checked = None
        self.series = {}
        self.queries = {}

    def look(self, address):
        """Let Prometheus scrape a process, and ask it for everything."""
        with urlopen(f"{address}/metrics") as answer:
            text = answer.read()
        command = [find_program("prometheus").replace("prometheus", "promtool"), "check", "metrics"]
        self.checked = subprocess.run(command, input=text, capture_output=True, check=False)
        target = address.removeprefix("http://")
        config = DEPLOY.joinpath("prometheus", "prometheus.yaml").read_text()
        config = config.replace("127.0.0.1:8080", target).replace("15s", "1s")
        self.folder.joinpath("prometheus.yaml").write_text(config)
        rules = DEPLOY.joinpath("prometheus", "alerts.yaml").read_text()
        self.folder.joinpath("alerts.yaml").write_text(rules)
        (port,) = free_ports(1)
        command = [find_program("prometheus"), f"--config.file={self.folder / 'prometheus.yaml'}"]
        command += [f"--storage.tsdb.path={self.folder}", f"--web.listen-address=127.0.0.1:{port}"]
        with (self.folder / "prometheus.log").open("wb") as log:
            server = subprocess.Popen(command, stdout=log, stderr=log)
        try:
            self._ask(f"http://127.0.0.1:{port}/api/v1/query")
        finally:
            server.terminate()
            server.wait()

    def _ask(self, api):
        deadline = time.monotonic() + PATIENCE_S
        while not (found := query(api, '{__name__=~"kaflow_.+"}')):
            assert time.monotonic() < deadline, (self.folder / "prometheus.log").read_text()
            time.sleep(0.2)
        for sample in found:
            self.series.setdefault(sample["metric"]["__name__"], []).append(sample)
        board = json.loads(DEPLOY.joinpath("grafana", "kaflow.json").read_text())
        for panel in board["panels"]:
            for target in panel.get("targets", ()):
                asked = target["expr"].replace("$pipeline", ".*")
                self.queries[asked] = query(api, asked)


def query(api, asked):
    try:
        with urlopen(f"{api}?{urlencode({'query': asked})}") as answer:
            return json.load(answer)["data"]["result"]
    except OSError:
        return None


@pytest.fixture(scope="module")
def scrape(tmp_path_factory):
    return Scrape(tmp_path_factory.mktemp("prometheus"))


@pytest.fixture(scope="module")
def findings(tmp_path_factory, scrape):
    found = run_troubles(tmp_path_factory.mktemp("troubles"), scrape.look)
    return {finding.trouble.name: finding for finding in found}


@pytest.mark.parametrize("trouble", TROUBLES, ids=lambda trouble: trouble.name)
def test_the_verdict_fits(trouble, findings):
    found = findings[trouble.name]
    assert found.verdict == trouble.expected, found.status


def test_the_verdict_names_what_to_look_at(findings):
    held = findings["idle_topic"].status
    assert held["verdict"]["why"].startswith("by topic returns partition 1, which is 3600 s behind")
    assert held["watermark"]["held_by"]["topic"] == "returns"
    assert held["waiting"]["rows"] == 200
    assert "topic 'orders', partition 1, offset 0" in findings["broken_record"].status["last_error"]
    assert findings["slow_sink"].status["verdict"]["evidence"]["produce"] > 0.3


def test_prometheus_takes_every_metric(findings, scrape):
    assert scrape.checked.returncode == 0, scrape.checked.stderr.decode()
    ends = {"histogram": "_bucket"}
    assert {m.name + ends.get(m.kind, "") for m in METRICS} <= set(scrape.series)
    failed = [
        sample["metric"]["pipeline"]
        for sample in scrape.series["kaflow_pipeline_state"]
        if sample["metric"]["state"] == "failed" and sample["value"][1] == "1"
    ]
    assert failed == ["broken_record"]


def test_prometheus_answers_every_question_of_the_dashboard(findings, scrape):
    assert len(scrape.queries) > 12
    unanswered = [asked for asked, found in scrape.queries.items() if found is None]
    assert unanswered == []
    now = [asked for asked, found in scrape.queries.items() if "[" not in asked and not found]
    assert now == []


def test_the_files_for_prometheus_are_sound():
    promtool = find_program("prometheus").replace("prometheus", "promtool")
    for kind, file in (("config", "prometheus.yaml"), ("rules", "alerts.yaml")):
        path = DEPLOY / "prometheus" / file
        done = subprocess.run([promtool, "check", kind, path], capture_output=True, check=False)
        assert done.returncode == 0, done.stdout + done.stderr
