"""Every command in the README is run, and what it shows is compared."""

import json
import os
import re
import shlex
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml
from click.testing import CliRunner

from kaflow_engine.cli.main import COMMANDS, kaflow
from kaflow_engine.connectors.kafka.client import KafkaSettings
from kaflow_engine.errors import Location
from kaflow_engine.model.config import Config
from kaflow_engine.model.pipelines.loader import load_pipeline, pipeline_from_mapping
from kaflow_engine.plan.explain.explain import explain
from kaflow_engine.plan.planner.pipeline_plan import check_pipeline
from tests.committed import read_committed
from tests.page import commands as commands_of
from tests.page import first_words

ROOT = Path(__file__).parent.parent
TEXT = ROOT.joinpath("README.md").read_text()
DEV = "kaflow dev"
PIPELINES = "dbt_style_models/pipelines"


def blocks(kind: str) -> list[str]:
    return re.findall(rf"^```{kind}\n(.*?)^```$", TEXT, re.MULTILINE | re.DOTALL)


def commands(block: str) -> list[str]:
    return [line.partition(" #")[0].strip() for line in block.splitlines() if line.strip()]


def needs_broker(command: str) -> bool:
    sends = command.startswith("kaflow fakegen") and "--stdout" not in command
    return command.startswith("kaflow run") or sends


WITH_BROKER = [b for b in map(commands, blocks("sh")) if any(map(needs_broker, b))]
ALONE = [
    command
    for block in map(commands, blocks("sh"))
    if block not in WITH_BROKER and block != [DEV]
    for command in block
]


@pytest.mark.parametrize("command", [c for c in ALONE if c.startswith("make ")])
def test_make_target(command):
    done = subprocess.run(
        [*shlex.split(command), "--dry-run"], cwd=ROOT, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout


@pytest.mark.parametrize("command", [c for c in ALONE if not c.startswith("make ")])
def test_command(command, monkeypatch):
    monkeypatch.chdir(ROOT)
    program, *arguments = shlex.split(command)
    assert program == "kaflow"
    done = CliRunner().invoke(kaflow, arguments, prog_name="kaflow")
    assert done.exit_code == 0, done.output
    assert done.stdout


def test_every_command_is_described():
    described = {name.split()[0] for name in re.findall(r"^\| `([a-z -]+)` \|", TEXT, re.MULTILINE)}
    assert described == set(COMMANDS) - {"version"}


def test_the_fifteen_lines_are_the_example():
    block, *_ = blocks("yaml")
    assert len(block.splitlines()) == 15
    here = pipeline_from_mapping(yaml.safe_load(block), Location("README.md"))
    file = load_pipeline(ROOT / "dbt_style_models/pipelines/user_enrichment.yaml", {})
    assert here.query.split() == file.query.split()
    without = {"query": "", "group": None}
    assert (
        here.model_copy(update=without).model_dump() == file.model_copy(update=without).model_dump()
    )


def test_the_example_of_several_outputs(tmp_path):
    (block,) = [block for block in blocks("yaml") if "\noutputs:\n" in block]
    file = tmp_path / "orders_by_country.yaml"
    file.write_text(block)
    spec = load_pipeline(file, {})
    assert check_pipeline(spec) == ()
    found = explain(spec, Config()).outputs
    assert [(output.target, output.format, output.branches[0].where) for output in found] == [
        ("all_orders", "json", ()),
        ("dutch_orders", "avro", ("c.country = 'NL'",)),
        ("amounts", "delta", ()),
    ]


def test_the_example_of_a_union(tmp_path):
    (block,) = [block for block in blocks("yaml") if "UNION ALL" in block]
    file = tmp_path / "sales.yaml"
    file.write_text(block)
    spec = load_pipeline(file, {})
    assert check_pipeline(spec) == ()
    found = explain(spec, Config())
    reads = [("web_orders", "customers"), ("shop_orders", "customers")]
    assert [chain.topics for chain in found.chains] == reads
    (output,) = found.outputs
    assert [(column.name, column.type) for column in output.columns or ()] == [
        ("source", "VARCHAR"),
        ("order_id", "VARCHAR"),
        ("amount", "DOUBLE"),
        ("country", "VARCHAR"),
    ]


def test_the_folders_exist():
    for folder in re.findall(r"^\| `([a-z_/]+/)` \|", TEXT, re.MULTILINE):
        assert (ROOT / folder).is_dir(), folder
    for target in re.findall(r"\]\(([^)]+)\)", TEXT):
        assert (ROOT / target.partition("#")[0]).exists(), target


@pytest.fixture
def surroundings(tmp_path) -> Iterator[dict[str, str]]:
    """`kaflow dev` on any free port, beside a copy of the examples."""
    shutil.copytree(ROOT / "dbt_style_models", tmp_path / "dbt_style_models")
    environ = {
        **os.environ,
        "PYTHONPATH": os.pathsep.join([str(ROOT / "engine"), os.environ.get("PYTHONPATH", "")]),
        "PYTHONUNBUFFERED": "1",
    }
    with subprocess.Popen(
        [*program(DEV), "--port", "0"], env=environ, stdout=subprocess.PIPE, text=True
    ) as running:
        assert running.stdout is not None
        try:
            broker = running.stdout.readline().split()[1]
            yield {**environ, "KAFLOW__KAFKA__BROKERS": broker}
        finally:
            running.terminate()


def program(command: str) -> list[str]:
    return [sys.executable, "-m", "kaflow_engine.cli.main", *shlex.split(command)[1:]]


@pytest.mark.kafka
@pytest.mark.spark
def test_the_example_runs_as_it_is_told(surroundings, tmp_path, monkeypatch):
    (block,) = WITH_BROKER
    outputs: list[str] = []
    for number, command in enumerate(block):
        done = subprocess.run(
            program(command),
            cwd=tmp_path,
            env=surroundings,
            capture_output=True,
            text=True,
            check=False,
            timeout=400,
        )
        assert done.returncode == 0, (command, done.stderr)
        outputs.append(done.stdout)
        if number == 0:
            compare_rows(surroundings["KAFLOW__KAFKA__BROKERS"])
    heads, only = outputs[0].splitlines()[2:4]
    assert [heads, only] == blocks("text")[0].splitlines()
    assert outputs[1].startswith("unchanged  user_enrichment")
    assert outputs[3].splitlines()[3].endswith("adds up")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("KAFLOW__KAFKA__BROKERS", surroundings["KAFLOW__KAFKA__BROKERS"])
    operate(tmp_path)


def operate(folder: Path) -> None:
    """Run the commands of two other pages over the state that the first page has left."""
    operations = (*first_words("kaflow", "state"), *first_words("kaflow", "plan"))
    for command in (*operations, *commands_of("state.md")):
        here = command.replace("120", "1").replace(" pipelines ", f" {PIPELINES} ")
        done = CliRunner().invoke(kaflow, shlex.split(here)[1:], prog_name="kaflow")
        if "--approve" in command:  # there is nothing to approve
            assert "needs no approval" in done.stderr, command
        else:
            assert done.exit_code == 0, (command, done.output)
            assert done.stdout or " rows " in done.stderr, command
    assert (folder / "rows.parquet").exists()


def compare_rows(broker: str) -> None:
    written = read_committed(KafkaSettings.of([broker]), "enriched_events")["value"].to_pylist()
    shown = [json.loads(line) for line in blocks("json")[0].splitlines()]
    assert [json.loads(value) for value in written[: len(shown)]] == shown
