"""`make run-engine`: what its one command does, and that it leaves nothing behind."""

import os
import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest
from click.testing import CliRunner

from kaflow_engine.cli.run.demo import command
from kaflow_engine.testing.services.processes import commands_of

ROOT = Path(__file__).parents[3]


def recipe():
    """What `make run-engine` runs, without the program."""
    (line,) = re.findall(
        r"^run-engine:.*\n\t@exec \$\(BIN\)/kaflow (.*) \$\(ARGS\)$", text(), re.MULTILINE
    )
    return shlex.split(line)


def text():
    return ROOT.joinpath("Makefile").read_text()


def test_a_topic_without_sample_data_is_noticed_before_anything_starts(tmp_path):
    file = tmp_path / "p.yaml"
    file.write_text("name: p\nquery: SELECT a.x FROM nowhere a\noutput: {topic: o}\n")
    done = CliRunner().invoke(command, [str(file)])
    assert "there are no sample records for topic 'nowhere'" in str(done.exception)
    assert "starting" not in done.output


@pytest.mark.kafka
@pytest.mark.spark
def test_make_run_engine_shows_rows_adds_up_and_leaves_nothing_behind(tmp_path):
    environ = {
        **os.environ,
        "PYTHONPATH": os.pathsep.join([str(ROOT / "engine"), os.environ.get("PYTHONPATH", "")]),
        "RUN_SECONDS": "8",
        "TMPDIR": str(tmp_path),
    }
    done = subprocess.run(
        [sys.executable, "-m", "kaflow_engine.cli.main", *recipe()],
        cwd=ROOT,
        env=environ,
        capture_output=True,
        text=True,
        check=False,
        timeout=400,
    )
    assert done.returncode == 0, done.stderr
    for told in ("starting a Kafka broker", "all pipelines run", "first row of", "removing broker"):
        assert told in done.stderr
    pipelines = list((ROOT / "dbt_style_models/pipelines").glob("*.yaml"))
    assert done.stdout.count("adds up") == len(pipelines)
    assert "Traceback" not in done.stderr
    left = [entry.name for entry in tmp_path.iterdir() if entry.name.startswith("kaflow-")]
    assert left == []
    assert not commands_of(str(tmp_path))
