import json

import pytest
from click.testing import CliRunner

from kaflow_engine.cli.fakegen import command
from kaflow_engine.errors import UnknownName
from kaflow_engine.testing.services.broker import Broker


def test_the_same_seed_prints_the_same_records():
    options = ["--stdout", "--topics", "transactions, users,merchants", "--max-records", "400"]
    first = CliRunner().invoke(command, [*options, "--seed", "3"])
    assert first.exit_code == 0, first.output
    assert first.output == CliRunner().invoke(command, [*options, "--seed", "3"]).output
    assert first.output != CliRunner().invoke(command, [*options, "--seed", "4"]).output
    lines = [json.loads(line) for line in first.output.splitlines()]
    assert len(lines) == 400
    assert {line["topic"] for line in lines} == {"transactions", "users", "merchants"}


def test_the_start_moves_the_timestamps():
    options = ["--stdout", "--topics", "events", "--max-records", "1"]
    done = CliRunner().invoke(command, [*options, "--start", "2026-03-01T00:00:00Z"])
    assert json.loads(done.output)["timestamp"] == 1_772_323_200_000


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--live", "--start", "2026-03-01T00:00:00Z"], "exclude each other"),
        (["--fast"], "--fast needs an end"),
        (["--rate", "0"], "--rate"),
    ],
)
def test_options_that_make_no_sense_are_refused(options: list[str], message: str):
    done = CliRunner().invoke(command, options)
    assert done.exit_code == 2
    assert message in done.output


def test_an_unknown_topic_is_an_error_of_the_engine():
    with pytest.raises(UnknownName, match="unknown sample topic 'user_event'"):
        CliRunner().invoke(
            command, ["--topics", "user_event", "--brokers", "127.0.0.1:9"], catch_exceptions=False
        )


@pytest.mark.kafka
def test_records_are_sent_at_the_rate(broker: Broker):
    options = ["--topics", "support", "--rate", "100", "--duration", "1s"]
    done = CliRunner().invoke(command, [*options, "--brokers", broker.bootstrap])
    assert done.exit_code == 0, done.output
    assert f"sent 100 records to support at {broker.bootstrap}" in done.output
