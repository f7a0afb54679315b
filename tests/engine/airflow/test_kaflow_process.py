"""What a command prints, and how it ends; Airflow is not needed."""
# pyright: basic

import os
import sys
from pathlib import Path
from queue import SimpleQueue
from threading import Thread

import pytest

from kaflow_engine.airflow import kaflow_process
from kaflow_engine.airflow.kaflow_process import Command

pytestmark = pytest.mark.slow

ROW = '{"output": "o", "op": "+", "row": {"id": 1}}'
SUMMARY = '{\n  "pipelines": [\n    {\n      "name": "o"\n    }\n  ]\n}'


def command(text, error="", code=0):
    """Start a command that prints texts."""
    said = f"import sys; print({text!r}); print({error!r}, file=sys.stderr); sys.exit({code})"
    return Command([sys.executable, "-c", said], Path.cwd(), {})


@pytest.mark.parametrize(
    ("text", "as_json", "lines", "found"),
    [
        (SUMMARY, True, [], {"pipelines": [{"name": "o"}]}),
        (f"{ROW}\n{ROW}\n{SUMMARY}", True, [ROW, ROW], {"pipelines": [{"name": "o"}]}),
        (ROW, True, [ROW], None),
        ("[\n  1,\n  2\n]", True, [], [1, 2]),
        ("[]", True, [], []),
        ("{}", True, [], {}),
        ("{\n  torn", True, ["{\n  torn"], None),
        ("", True, [], None),
        ("{\n}", False, ["{", "}"], None),
    ],
)
def test_what_it_prints(text, as_json, lines, found):
    said = []
    ended = command(text).follow(said.append, as_json=as_json)
    assert (said, ended.found, ended.code) == (lines, found, 0)


def test_what_it_says_of_a_failure():
    said = []
    error = "preparing\nerror: a.yaml:3: unknown key\n  hint: none"
    ended = command(ROW, error, code=10).follow(said.append, as_json=True)
    assert (ended.code, ended.found) == (10, None)
    assert ended.error == "error: a.yaml:3: unknown key\n  hint: none"
    assert sorted(said) == sorted([ROW, *error.splitlines()])


def test_a_row_that_comes_behind_an_error_is_none_of_it(tmp_path):
    seen = tmp_path / "seen"
    said = f"""
import sys, time, pathlib
print("error: a.yaml:3: unknown key", file=sys.stderr, flush=True)
while not pathlib.Path({str(seen)!r}).exists():
    time.sleep(0.01)
print({ROW!r})
"""
    lines = []

    def say(line):
        lines.append(line)
        seen.touch()

    ended = Command([sys.executable, "-c", said], tmp_path, {}).follow(say, as_json=True)
    assert ended.error == "error: a.yaml:3: unknown key"
    assert lines == [ended.error, ROW]


class TimeIsUp(BaseException):
    """As Airflow raises it, in the middle of whatever runs."""


@pytest.mark.parametrize("number", [1, 2, 3])
def test_it_ends_wherever_its_time_is_up(monkeypatch, number):
    raised = []

    class Interrupted(SimpleQueue):
        taken = 0

        def get(self, *args, **kwargs):
            item = super().get(*args, **kwargs)
            self.taken += 1
            if self.taken == number:
                raise TimeIsUp
            return item

    def follow():
        try:
            command("one line").follow(lambda line: None, as_json=False)
        except TimeIsUp as error:
            raised.append(error)

    monkeypatch.setattr(kaflow_process, "SimpleQueue", Interrupted)
    thread = Thread(target=follow, daemon=True)
    thread.start()
    thread.join(10)
    assert not thread.is_alive()
    assert number > 1 or raised


def test_what_is_raised_meanwhile_is_raised_when_it_has_ended(tmp_path):
    mark = tmp_path / "ended"
    said = (
        "import pathlib, signal, sys, time\n"
        f"def end(*_): time.sleep(0.2); pathlib.Path({os.fspath(mark)!r}).touch(); sys.exit()\n"
        "signal.signal(signal.SIGTERM, end)\n"
        "print('runs', flush=True)\n"
        "time.sleep(60)\n"
    )

    def say(line):
        raise TimeIsUp

    with pytest.raises(TimeIsUp):
        Command([sys.executable, "-c", said], tmp_path, {}).follow(say, as_json=False)
    assert mark.exists()
