import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from kaflow_engine.errors import RunError
from kaflow_engine.testing.services.child import Child, free_ports, listening


def alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return True


def gone(pid: int) -> bool:
    deadline = time.monotonic() + 5
    while alive(pid) and time.monotonic() < deadline:
        time.sleep(0.01)
    return not alive(pid)


@pytest.mark.parametrize("end", [Child.stop, Child.kill])
def test_a_child_runs_until_it_is_ended(tmp_path: Path, end: object):
    child = Child(["sleep", "60"], tmp_path / "log")
    assert child.running
    assert alive(child.pid)
    assert callable(end)
    end(child)
    assert not child.running
    assert gone(child.pid)


def test_a_child_that_ignores_the_request_is_killed(tmp_path: Path):
    child = Child(
        ["sh", "-c", "trap '' TERM; echo up; while :; do sleep 1; done"], tmp_path / "log"
    )
    child.wait_until(lambda: "up" in (tmp_path / "log").read_text(), "the server", 5)
    child.stop(seconds=0.1)
    assert gone(child.pid)


def test_an_end_while_starting_shows_the_log(tmp_path: Path):
    child = Child(["sh", "-c", "echo no room; exit 3"], tmp_path / "log")
    with pytest.raises(RunError, match="the server ended while starting") as caught:
        child.wait_until(lambda: False, "the server", 5)
    assert caught.value.hint is not None
    assert caught.value.hint.endswith("no room")


def test_a_child_dies_with_its_parent_however_that_ends(tmp_path: Path):
    code = (
        "import sys, threading, pathlib; from kaflow_engine.testing.services.child import Child\n"
        "def start(): print(Child(['sleep', '60'], pathlib.Path(sys.argv[1])).pid, flush=True)\n"
        "thread = threading.Thread(target=start); thread.start(); thread.join()\n"
        "sys.stdin.read()\n"
    )
    command = [sys.executable, "-c", code, str(tmp_path / "log")]
    pipe = subprocess.PIPE
    with subprocess.Popen(command, stdin=pipe, stdout=pipe) as parent:
        assert parent.stdout is not None
        pid = int(parent.stdout.readline())
        assert alive(pid)  # although the thread that started it has ended
        parent.send_signal(signal.SIGKILL)
    assert gone(pid)


def test_free_ports_are_free_and_different():
    ports = free_ports(3)
    assert len(set(ports)) == 3
    assert not any(listening(port) for port in ports)
