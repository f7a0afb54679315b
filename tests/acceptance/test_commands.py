"""KS32 and KS33: a bad file among good ones, and sample records."""

import pytest
from click.testing import CliRunner

from kaflow_engine.cli.fakegen import command as fakegen
from kaflow_engine.cli.main import kaflow
from kaflow_engine.connectors.kafka.admin import delete_topics
from kaflow_engine.connectors.kafka.client import KafkaSettings
from kaflow_engine.connectors.kafka.read import read_all

GOOD = "name: {name}\nquery: SELECT id FROM t\noutput: {{topic: {name}_out, key: id}}\n"


@pytest.mark.parametrize("command", ["validate", "run", "explain", "plan"])
def test_ks32_a_bad_file_among_good_ones_is_refused(tmp_path, monkeypatch, command):
    monkeypatch.chdir(tmp_path)
    for name in ("a", "c"):
        (tmp_path / f"{name}.yaml").write_text(GOOD.format(name=name))
    (tmp_path / "b.yaml").write_text(GOOD.format(name="b") + "emission: {type: smrt}\n")
    done = CliRunner().invoke(kaflow, [command, "."], prog_name="kaflow")
    assert done.exit_code == 10, done.output
    assert "b.yaml:4: " in done.stderr
    assert "smart" in done.stderr
    assert "Traceback" not in done.output


@pytest.mark.kafka
def test_ks33_the_same_seed_gives_the_same_records(broker):
    kafka = KafkaSettings.of([broker.bootstrap])
    topics = ["merchants", "user_actions"]
    options = ["--topics", ",".join(topics), "--rate", "300", "--duration", "1s"]

    def generated(seed: int):
        delete_topics(kafka, topics)
        sent = CliRunner().invoke(
            fakegen, [*options, "--brokers", broker.bootstrap, "--seed", str(seed)]
        )
        assert sent.exit_code == 0, sent.output
        return [read_all(kafka, topic).to_pylist() for topic in topics]

    first = generated(7)
    assert all(first)
    assert generated(7) == first
    assert generated(8) != first
