import os
import signal
import subprocess
import sys

import pytest

from kaflow_engine.runtime.tasks.crash import VARIABLE, crash_point

CODE = (
    "from kaflow_engine.runtime.tasks.crash import *\ncrash_point('before_commit', 3, os.getpid())"
)


def reach(asked):
    path = os.pathsep.join(sys.path)
    env = {**os.environ, VARIABLE: asked, "PYTHONPATH": path}
    return subprocess.Popen([sys.executable, "-c", CODE], env=env)


@pytest.mark.parametrize(
    "asked", ["", "committed:3", "before_commit:4", "before_commit:33", "@missing", "before_commit"]
)
def test_elsewhere_nothing_happens(monkeypatch, asked):
    monkeypatch.setenv(VARIABLE, asked)
    crash_point("before_commit", 3, os.getpid())


@pytest.mark.parametrize("asked", ["before_commit:3", "before_commit:3:task", "before_commit:*"])
def test_it_kills_where_it_is_told_to(asked):
    assert reach(asked).wait() == -signal.SIGKILL


def test_a_file_stops_one_process_once(tmp_path):
    asked = tmp_path / "asked"
    asked.write_text("before_commit:*:pause\n")
    process = reach(f"@{asked}")
    _, status = os.waitpid(process.pid, os.WUNTRACED)
    assert os.WIFSTOPPED(status)
    assert not asked.exists()
    process.send_signal(signal.SIGCONT)
    assert process.wait() == 0
    assert reach(f"@{asked}").wait() == 0
