"""`make run`: streams run in Dagster, their tables fill, and nothing stays behind."""
# pyright: basic

import os
import re
import shlex
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from kaflow_dagster.instance import Instance
from kaflow_engine.connectors.delta import partition_rows

pytestmark = [pytest.mark.spark, pytest.mark.kafka, pytest.mark.services]

ROOT = Path(__file__).parents[2]
PATIENCE_S = 300


def recipe():
    """What `make run` runs, without the program."""
    text = ROOT.joinpath("Makefile").read_text().replace("\\\n", "")
    (line,) = re.findall(r"^run:.*\n\t@exec \$\(BIN\)/python (.*) \$\(ARGS\)$", text, re.MULTILINE)
    return shlex.split(line)


def test_make_run(tmp_path):
    paths = os.pathsep.join([str(ROOT), str(ROOT / "engine")])
    log = tmp_path / "log"
    with log.open("wb") as said:
        process = subprocess.Popen(
            [sys.executable, *recipe(), "--port", "0"],
            cwd=ROOT,
            env={**os.environ, "PYTHONPATH": paths, "TMPDIR": str(tmp_path)},
            stdout=said,
            stderr=said,
        )
    try:
        until(process, log, lambda: "all streams run" in log.read_text())
        instance = Instance(int(re.findall(r"http://127\.0\.0\.1:(\d+)", log.read_text())[0]))
        (table,) = tmp_path.glob("kaflow-platform-*/warehouse")
        until(process, log, lambda: sum(partition_rows(table / "orders_by_day").values()) > 100)
        assert instance.materialized() >= {"streams/orders_by_day", "streams/user_enrichment"}
        process.send_signal(signal.SIGINT)
        assert process.wait(120) == 0, log.read_text()
    finally:
        process.kill()
    assert "Traceback" not in log.read_text()
    assert not list(tmp_path.glob("kaflow-*"))
    commands = [file.read_bytes() for file in Path("/proc").glob("[0-9]*/cmdline") if file.exists()]
    assert not [c for c in commands if str(tmp_path).encode() in c]


def until(process, log, holds):
    end = time.monotonic() + PATIENCE_S
    while not holds():
        assert process.poll() is None, log.read_text()
        assert time.monotonic() < end, log.read_text()
        time.sleep(0.5)
