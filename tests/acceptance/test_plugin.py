"""CN11: the package that `kaflow init --plugin` writes, installed, under its laws, run by Spark.

Beside it runs one that was frozen at version 1 of the contract.
"""
# pyright: basic

import json
import os
import sqlite3
import subprocess
import sys
from collections import Counter

import pytest
import yaml
from click.testing import CliRunner

from kaflow_engine.cli.main import kaflow
from kaflow_engine.connectors.kafka.client import open_producer
from kaflow_engine.connectors.kafka.topic_schemas import sample
from tests.acceptance.three_days import CLICKS, DAYS, load
from tests.conftest import FROZEN_PLUGIN

pytestmark = [pytest.mark.spark, pytest.mark.kafka]

CLICKED = range(DAYS * 144)


@pytest.fixture(scope="module")
def package(tmp_path_factory):
    """Write the package, and install it into a folder that PYTHONPATH has to name."""
    folder = tmp_path_factory.mktemp("plugin") / "acme.tally"
    made = CliRunner().invoke(kaflow, ["init", "--plugin", str(folder)], prog_name="kaflow")
    assert made.exit_code == 0, made.output
    pip = [sys.executable, "-m", "pip", "--disable-pip-version-check", "install", "--quiet"]
    target = folder.parent / "site"
    alone = ["--no-deps", "--no-build-isolation", "--target", str(target)]
    subprocess.run([*pip, *alone, str(folder)], check=True)
    here = os.environ.get("PYTHONPATH", "")
    path = os.pathsep.join([str(target), str(FROZEN_PLUGIN), here])
    return folder, {**os.environ, "PYTHONPATH": path}


def run(package, *arguments, cwd=None):
    folder, environment = package
    done = subprocess.run(
        [sys.executable, "-m", *arguments],
        env=environment,
        cwd=cwd or folder,
        capture_output=True,
        text=True,
    )
    return done.returncode, done.stdout + done.stderr


def test_it_keeps_the_laws(package):
    code, said = run(package, "pytest", "-q", "-p", "no:cacheprovider", "tests")
    assert code == 0, said
    assert "56 passed" in said


def test_its_example_is_planned(package):
    explain = ("kaflow_engine.cli.main", "explain")
    code, said = run(package, *explain, "pipelines")
    assert code == 0, said
    assert "exactly once: rows and the number of their batch are one transaction" in said
    assert "rows of the plugin acme.tally_feed" in said
    assert "converted: acme.tally_converted, rate: 1.25" in said


def test_rows_are_there_once(package, broker, tmp_path, unique):
    load(broker, "plug")
    audit = tmp_path / "audit.jsonl"
    for topic in ("logged", "paid"):
        broker.create_topic(f"{unique}.{topic}", 1)
    producer = open_producer(broker.settings).api
    for line in ("id=1 paid=true", "no pairs", "id=2 paid=false"):
        producer.produce(f"{unique}.logged", line.encode())
    producer.flush()
    tmp_path.joinpath("kaflow.yaml").write_text(
        yaml.safe_dump(
            {
                "kafka": {"brokers": broker.bootstrap},
                "state": {"rocksdb": {"path": str(tmp_path / "state")}},
                "max_records": 150,
                "http": {"port": 0},
                "plugins": {"frozen.letters": {"settings": {"ending": "-from-config"}}},
            }
        )
    )
    pipeline = {
        "name": unique,
        "outputs": [
            {
                "query": 'SELECT id, u FROM "plug.clicks"',
                "type": "acme.tally",
                "options": {"file": str(tmp_path / "rows.db")},
            },
            {
                "query": "SELECT n, half, half_converted FROM converted",
                "type": "acme.tally",
                "name": "numbers",
                "options": {"file": str(tmp_path / "numbers.db")},
            },
            {
                "query": "SELECT place, letter FROM letters",
                "type": "frozen.lines",
                "options": {"file": str(tmp_path / "letters.txt")},
            },
            {
                "query": "SELECT n FROM counted",
                "type": "frozen.lines",
                "name": "counted",
                "options": {"file": str(tmp_path / "counted.txt")},
                "side_outputs": [
                    {"type": "acme.tally_audit", "options": {"file": str(tmp_path)}},
                    {"type": "acme.tally_audit", "options": {"file": str(audit)}},
                ],
            },
            {
                "query": f'SELECT id, paid FROM "{unique}.logged"',
                "topic": f"{unique}.paid",
                "key": "id",
                "format": "acme.tally_logfmt",
                "side_outputs": [{"type": "acme.tally_audit", "options": {"file": str(audit)}}],
            },
            {
                "query": "SELECT line FROM lines",
                "type": "frozen.lines",
                "name": "lines",
                "options": {"file": str(tmp_path / "lines.txt")},
            },
        ],
        "relations": {
            "converted": {
                "type": "acme.tally_converted",
                "from": "numbers",
                "options": {"column": "half", "rate": 4},
            },
        },
        "topics": {
            "plug.clicks": CLICKS,
            f"{unique}.logged": {
                "format": "acme.tally_logfmt",
                "columns": {"id": "BIGINT", "paid": "BOOLEAN"},
            },
        },
        "sources": {
            "numbers": {"type": "frozen.numbers", "options": {"count": 5, "partitions": 2}},
            "letters": {"type": "frozen.letters", "options": {"text": "abc", "fails_once": True}},
            "counted": {
                "type": "acme.tally",
                "options": {"file": str(tmp_path / "seed.db")},
                "columns": {"n": "BIGINT"},
            },
            "lines": {"type": "acme.tally_feed", "options": {"file": str(tmp_path / "feed.txt")}},
        },
    }
    tmp_path.joinpath("feed.txt").write_text("one\ntwo\n")
    with sqlite3.connect(tmp_path / "seed.db") as file:
        file.execute("CREATE TABLE rows (row TEXT)")
        file.executemany("INSERT INTO rows VALUES (?)", [('{"n": 1}',), ('{"n": 2}',)])
    tmp_path.joinpath("p.yaml").write_text(yaml.safe_dump(pipeline, sort_keys=False))
    output = ""
    for _ in range(2):
        code, said = run(
            package,
            *("kaflow_engine.cli.main", "run", "p.yaml", "--until-caught-up"),
            cwd=tmp_path,
        )
        assert code == 0, said
        output += said
    with sqlite3.connect(tmp_path / "rows.db") as file:
        rows = [json.loads(row) for (row,) in file.execute("SELECT row FROM rows")]
        batches = file.execute("SELECT max(batch) FROM kaflow_ledger").fetchone()
    assert Counter(row["id"] for row in rows) == Counter(CLICKED)
    assert batches[0] > 1
    with sqlite3.connect(tmp_path / "numbers.db") as file:
        numbers = sorted(row for (row,) in file.execute("SELECT row FROM rows"))
    converted = [f'{{"n":{n},"half":{n / 2},"half_converted":{n * 2.0}}}' for n in range(5)]
    assert numbers == sorted(2 * converted)
    found = sample(broker.settings, f"{unique}.paid", 1)
    assert found == [b"id=1 paid=True", b"id=2 paid=False"]
    seen = [json.loads(line) for line in audit.read_text().splitlines()]
    rows = Counter({each["output"]: 0 for each in seen})
    for each in seen:
        rows[each["output"]] += each["rows"]
    assert rows == {f"{unique}.paid": 2, "frozen.lines:counted": 2}
    assert "side output 'acme.tally_audit' of 'frozen.lines:counted' failed on" in output
    assert values(tmp_path / "letters.txt", "letter") == [*"abc-from-config"]
    assert values(tmp_path / "counted.txt", "n") == [1, 2]
    assert values(tmp_path / "lines.txt", "line") == ["one", "two"]


def values(file, column):
    return [json.loads(line)[column] for line in file.read_text().splitlines()]
