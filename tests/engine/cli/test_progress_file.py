"""What `kaflow run --progress FILE` writes."""

import json
import time
from itertools import count
from pathlib import Path

import pytest

from kaflow_engine.cli.run.progress_file import progress_file
from kaflow_engine.telemetry.progress import Progress
from tests.engine.telemetry.examples import FULL


def test_every_change_is_a_line_as_soon_as_it_happens(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    moments = count(1_767_225_600_000_500_000, 1_000_000)
    monkeypatch.setattr(time, "time_ns", lambda: next(moments))
    path = tmp_path / "progress.jsonl"
    with progress_file(path) as note:
        note(Progress(pipeline="p", state="starting"))
        assert len(path.read_text().splitlines()) == 1
        note(Progress(pipeline="p", state="running", batch=1, phases={"task.run.0": 5.0}))
    first, second = map(json.loads, path.read_text().splitlines())
    assert (first["state"], second["state"]) == ("starting", "running")
    assert second["phases"] == {"task.run.0": 5.0}
    assert (first["time"], second["time"]) == (1_767_225_600_000.5, 1_767_225_600_001.5)


def test_all_that_is_known_is_data_for_json(tmp_path: Path):
    path = tmp_path / "progress.jsonl"
    with progress_file(path) as note:
        note(FULL)
    found = json.loads(path.read_text())
    assert [["level", "journal_waiting", [["source", "hooks"]]], {"value": 30, "times": 1}] in (
        found["received"]
    )


def test_the_next_run_goes_on_with_the_file(tmp_path: Path):
    path = tmp_path / "progress.jsonl"
    for name in ("first", "second"):
        with progress_file(path) as note:
            note(Progress(pipeline=name))
    lines = path.read_text().splitlines()
    assert [json.loads(line)["pipeline"] for line in lines] == ["first", "second"]


def test_without_a_path_nothing_is_written(tmp_path: Path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with progress_file(None) as note:
        note(Progress(pipeline="p"))
    assert list(tmp_path.iterdir()) == []
