import os
import signal
import subprocess
import sys

import pytest

from kaflow_engine.runtime.crash import VARIABLE, crash_point


@pytest.mark.parametrize("asked", ["", "committed:3", "before_commit:4", "before_commit:33"])
def test_elsewhere_nothing_happens(monkeypatch, asked):
    monkeypatch.setenv(VARIABLE, asked)
    crash_point("before_commit", 3, os.getpid())


@pytest.mark.parametrize("asked", ["before_commit:3", "before_commit:3:task"])
def test_it_kills_where_it_is_told_to(asked):
    code = "from kaflow_engine.runtime.crash import *\ncrash_point('before_commit', 3, os.getpid())"
    path = os.pathsep.join(sys.path)
    env = {**os.environ, VARIABLE: asked, "PYTHONPATH": path}
    done = subprocess.run([sys.executable, "-c", code], env=env, check=False)
    assert done.returncode == -signal.SIGKILL
