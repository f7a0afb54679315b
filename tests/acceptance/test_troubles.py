"""Pipelines in trouble: what the port says of them, and what a real Prometheus makes of it."""
# pyright: basic

import json
import subprocess
from pathlib import Path
from urllib.request import urlopen

import pytest

from bench.troubles import RECORDS, TROUBLES, run_troubles
from kaflow_engine.telemetry.metrics.table import METRICS
from tests.engine.telemetry.receiver import receive_grpc
from tests.page import first_words
from tests.prometheus import scraping
from tests.system import find_program

pytestmark = [pytest.mark.spark, pytest.mark.kafka, pytest.mark.services]

DEPLOY = Path(__file__).parents[2] / "deploy"


class Scrape:
    """What a Prometheus and its tools found at a running process."""

    def __init__(self, folder):
        self.folder = folder
        self.checked = None
        self.status = {}
        self.series = {}
        self.queries = {}

    def look(self, address):
        """Let Prometheus scrape a process, and ask it for everything."""
        with urlopen(f"{address}/metrics") as answer:
            text = answer.read()
        (curl,) = first_words("curl")
        _, *asked = curl.replace("http://127.0.0.1:8080", address).split()
        self.status = json.loads(subprocess.check_output([find_program("curl"), *asked]))
        command = [find_program("prometheus").replace("prometheus", "promtool"), "check", "metrics"]
        self.checked = subprocess.run(command, input=text, capture_output=True, check=False)
        target = address.removeprefix("http://")
        config = DEPLOY.joinpath("prometheus", "prometheus.yaml").read_text()
        config = config.replace("127.0.0.1:8080", target).replace("15s", "1s")
        self.folder.joinpath("prometheus.yaml").write_text(config)
        rules = DEPLOY.joinpath("prometheus", "alerts.yaml").read_text()
        self.folder.joinpath("alerts.yaml").write_text(rules)
        with scraping(self.folder) as prometheus:
            self._ask(prometheus)

    def _ask(self, prometheus):
        for sample in prometheus.until('{__name__=~"kaflow_.+"}'):
            self.series.setdefault(sample["metric"]["__name__"], []).append(sample)
        board = json.loads(DEPLOY.joinpath("grafana", "kaflow.json").read_text())
        for panel in board["panels"]:
            for target in panel.get("targets", ()):
                asked = target["expr"].replace("$pipeline", ".*")
                self.queries[asked] = prometheus.query(asked)


@pytest.fixture(scope="module")
def scrape(tmp_path_factory):
    return Scrape(tmp_path_factory.mktemp("prometheus"))


@pytest.fixture(scope="module")
def received():
    """Where traces are sent."""
    with receive_grpc() as (address, received):
        received.address = address
        yield received


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("troubles")


@pytest.fixture(scope="module")
def findings(folder, scrape, received):
    settings = {
        "logging.format": "json",
        "logging.level": "debug",
        "otlp.endpoint": received.address,
    }
    found = run_troubles(folder, scrape.look, settings)
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


def test_the_port_answers_as_the_page_says(findings, scrape):
    assert {each["pipeline"] for each in scrape.status["pipelines"]}
    assert all(each["verdict"]["why"] for each in scrape.status["pipelines"])


def test_prometheus_takes_every_metric(findings, scrape):
    assert scrape.checked.returncode == 0, scrape.checked.stderr.decode()
    ends = {"histogram": "_bucket"}
    absent = ("kaflow_checkpoint_", "kaflow_side_output_", "kaflow_handler_")  # none is there
    here = [m for m in METRICS if not m.name.startswith(absent)]
    assert {m.name + ends.get(m.kind, "") for m in here} <= set(scrape.series)
    called = {
        sample["metric"]["status"]: sample["value"][1]
        for sample in scrape.series["kaflow_receiver_requests_total"]
    }
    assert called == {"200": "3", "400": "1"}
    (script,) = scrape.series["kaflow_transform_rows_total"]
    assert (script["metric"]["transform"], script["value"][1]) == ("later", "3")
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


def test_each_batch_is_traced_with_its_stages(findings, received):
    batches = {span.span_id: about(span) for span in received.spans if span.name == "batch"}
    committed = set(findings) - {"broken_record"}
    assert {batch["kaflow.pipeline"] for batch in batches.values()} == committed
    read = sum(b["kaflow.records"] for b in batches.values() if b["kaflow.pipeline"] == "slow_sink")
    assert read == RECORDS
    stages = [span for span in received.spans if span.parent_span_id]
    assert {span.name for span in stages} == {"map", "deliver", "join returns", "join views"}
    for span in stages:
        batch = batches[span.parent_span_id]
        assert about(span)["kaflow.batch"] == batch["kaflow.batch"]
        assert span.start_time_unix_nano <= span.end_time_unix_nano


def about(span):
    """Return the attributes of a span that are numbers or texts."""
    return {a.key: a.value.string_value or a.value.int_value for a in span.attributes}


def test_each_line_of_the_log_says_where_it_belongs(findings, folder):
    lines = folder.joinpath("run.log").read_text().splitlines()
    entries = [json.loads(line) for line in lines if line.startswith("{")]
    of_runs = [entry for entry in entries if entry["logger"] == "kaflow.runtime"]
    assert {entry["pipeline"] for entry in of_runs} == set(findings)
    batches = [entry for entry in of_runs if entry.get("batch") is not None]
    assert len(batches) > 20
    assert {entry["run"] for entry in batches} == {1}
    assert all(entry["message"] and entry["time"].endswith("Z") for entry in entries)


def test_the_files_for_prometheus_are_sound():
    promtool = find_program("prometheus").replace("prometheus", "promtool")
    for kind, file in (("config", "prometheus.yaml"), ("rules", "alerts.yaml")):
        path = DEPLOY / "prometheus" / file
        done = subprocess.run([promtool, "check", kind, path], capture_output=True, check=False)
        assert done.returncode == 0, done.stdout + done.stderr
