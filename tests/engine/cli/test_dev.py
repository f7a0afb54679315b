import os
import re
import signal
import subprocess
import sys
from contextlib import suppress
from pathlib import Path

import psycopg
import pytest
from click.testing import CliRunner

from kaflow_engine.cli.main import kaflow
from kaflow_engine.cli.options import allowances
from kaflow_engine.testing.services.postgres import server_programs
from tests.system import find_installed

START = "from kaflow_engine.cli.run.dev import command; command()"


CLICKS = """
pipeline:
  name: clicks
  on_error: {policy: DLQ}
  source: {type: kafka, kafka: {brokers: ["localhost:9092"], topics: [clicks]}}
  handler: {type: handlers.InferredMemBatch, sql: "SELECT sum(n::INTEGER) AS n FROM batch"}
  sink: {type: kafka, kafka: {brokers: ["localhost:9092"], topic: out}}
"""


def test_lines_of_a_file_go_through_a_pipeline_as_one_batch(tmp_path: Path):
    (tmp_path / "clicks.yml").write_text(CLICKS)
    messages = tmp_path / "messages.json"
    messages.write_text('{"n": "1"}\n\n{"n": "x"}\n{"n": "3"}\nnone\n')
    said = CliRunner().invoke(
        kaflow, ["dev", "invoke", str(tmp_path / "clicks.yml"), str(messages)]
    )
    assert said.exit_code == 0
    assert said.stdout == '{"n": 4}\n'
    assert [line.partition(": ")[2][:14] for line in said.stderr.splitlines()] == [
        "line 5: decode",
        "line 3: sql: C",
    ]


NAMED = "name: p\nquery: SELECT id FROM t\ntopics: {t: {columns: {id: BIGINT}}}\noutput: "


@pytest.mark.parametrize("output", ["{table: x}", "{topic: o, key: id, key_format: avro}"])
def test_rows_of_any_output_are_shown(tmp_path: Path, output: str):
    pipeline, messages = tmp_path / "p.yaml", tmp_path / "messages.json"
    pipeline.write_text(NAMED + output)
    messages.write_text('{"id": 1}')
    said = CliRunner().invoke(kaflow, ["dev", "invoke", str(pipeline), str(messages)])
    assert said.output == '{"id": 1}\n'


def test_a_database_of_each_kind_may_be_allowed_by_itself():
    assert allowances(()) == ()
    assert allowances(("read=data", "attach=mysql", "read=a.csv", "write=out")) == (
        "sql.read=data,a.csv",
        "sql.attach=mysql",
        "sql.write=out",
    )
    assert allowances(("attach=mysql", "attach=duckdb,sqlite")) == (
        "sql.attach=mysql,duckdb,sqlite",
    )


@pytest.mark.kafka
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_everything_runs_until_it_is_asked_to_stop(number: signal.Signals):
    command = [sys.executable, "-c", START, "--port", "0", "--records", "200"]
    pipe = subprocess.PIPE
    environ = {**os.environ, "PYTHONUNBUFFERED": "1"}
    with subprocess.Popen(command, stdout=pipe, stderr=pipe, text=True, env=environ) as running:
        assert running.stdout is not None
        first = running.stdout.readline()
        found = re.fullmatch(r"Kafka +127\.0\.0\.1:(\d+)\n", first)
        running.send_signal(number)
        assert running.stderr is not None
        rest, errors = running.stdout.read(), running.stderr.read()
        running.wait(30)
    assert found, errors
    assert running.returncode == 0, errors
    assert f"export KAFLOW__KAFKA__BROKERS=127.0.0.1:{found[1]}" in rest
    assert "Ctrl-C stops everything." in rest
    assert "Traceback" not in errors


def test_an_unknown_topic_is_noticed_before_anything_starts():
    command = [sys.executable, "-c", START, "--topics", "nope"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 1
    assert "unknown sample topic 'nope'" in done.stderr
    assert "starting Kafka" not in done.stderr


@pytest.mark.kafka
def test_a_broker_that_dies_ends_it():
    command = [sys.executable, "-u", "-c", START, "--port", "0", "--records", "0"]
    pipe = subprocess.PIPE
    with subprocess.Popen(command, stdout=pipe, stderr=pipe, text=True) as running:
        assert running.stdout is not None
        assert running.stderr is not None
        assert running.stdout.readline().startswith("Kafka ")
        keepers = Path(f"/proc/{running.pid}/task/{running.pid}/children").read_text().split()
        for keeper in keepers:
            for child in Path(f"/proc/{keeper}/task/{keeper}/children").read_text().split():
                with suppress(ProcessLookupError):  # one may end with another
                    os.kill(int(child), signal.SIGKILL)
        errors = running.stderr.read()
    assert running.returncode == 1
    assert "a server ended by itself" in errors
    assert "the end of" in errors


def test_an_unknown_server_is_noticed_before_anything_starts():
    command = [sys.executable, "-c", START, "--with", "registry,postgre"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 1
    assert "unknown server 'postgre'" in done.stderr
    assert "did you mean 'postgres'?" in done.stderr
    assert "starting Kafka" not in done.stderr


def test_a_server_that_it_cannot_start_is_named_with_what_to_do_instead():
    said = CliRunner().invoke(kaflow, ["dev", "--with", "postgres,clickhouse"])
    assert said.exit_code == 10
    assert "no package of a ClickHouse server" in said.output
    assert "--profile clickhouse up" in said.output
    (export,) = re.findall(r"export (\w+)=(\S+)", said.output)
    shown = CliRunner(env=dict([export])).invoke(kaflow, ["config", "show"])
    assert "clickhouse.connections.default.url" in shown.output


@pytest.mark.kafka
@pytest.mark.services
def test_postgres_has_a_table_to_join(tmp_path: Path):
    find_installed("postgresql", server_programs)
    command = [sys.executable, "-u", "-c", START, "--port", "0", "--records", "0"]
    log = tmp_path / "log"
    with (
        log.open("wb") as errors,
        subprocess.Popen(
            [*command, "--with", "postgres"], stdout=subprocess.PIPE, stderr=errors, text=True
        ) as running,
    ):
        assert running.stdout is not None
        said = [running.stdout.readline()]
        while said[-1] and "Ctrl-C" not in said[-1]:
            said.append(running.stdout.readline())
        text = "".join(said)
        found = re.search(r"export KAFLOW__POSTGRES__CONNECTIONS__DEFAULT__URL='(.*)'", text)
        assert found, log.read_text()
        with psycopg.connect(found[1]) as connection:
            names = connection.execute("SELECT first_name FROM users ORDER BY user_id").fetchall()
        running.send_signal(signal.SIGTERM)
        assert running.wait(60) == 0, log.read_text()
    assert [name for (name,) in names] == ["Alice", "Bruno", "Chidi", "Dana", "Emi"]
