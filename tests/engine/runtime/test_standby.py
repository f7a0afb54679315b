"""Processes that stand by: one runs, the others take over when it ends."""

# pyright: basic

import os
import signal
import subprocess
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from kaflow_engine.runtime.standby import stand_by
from kaflow_engine.state.storage.lease import find_holder

CODE = """
import sys, threading
from pathlib import Path
from kaflow_engine.runtime.standby import stand_by
say = lambda text: print(text, flush=True)
held = stand_by(Path(sys.argv[1]), "ab", threading.Event(), lambda held: say("waits"), 0.05)
say("runs")
sys.stdin.read()
"""


def test_every_process_has_its_turn_and_none_shares_it(tmp_path):
    """Sets that overlap in every way: whoever waits holds nothing, so there is no deadlock."""
    sets = ["ab", "bc", "ca", "abc", "a", "b", "c", "abc"]
    running: list[str] = []
    lock = threading.Lock()

    def process(pipelines: str) -> bool:
        leases = stand_by(tmp_path, pipelines, threading.Event(), lambda held: None, 0.001)
        assert leases is not None
        with leases:
            with lock:
                running.extend(pipelines)
                alone = len(set(running)) == len(running)
            with lock:
                for name in pipelines:
                    running.remove(name)
        return alone

    with ThreadPoolExecutor(len(sets)) as pool:
        assert all(pool.map(process, sets * 20))


def test_it_says_at_once_whom_it_waits_for_and_can_be_stopped(tmp_path):
    stop, said = threading.Event(), []
    first = stand_by(tmp_path, "a", stop, said.append)
    assert first is not None
    assert said == []

    def waits(held):
        said.append(held.message)
        stop.set()

    with first:
        assert stand_by(tmp_path, "ab", stop, waits, every=3600) is None
    assert said == [
        f"another run holds '{tmp_path}/a': process {os.getpid()} on {os.uname().nodename}"
    ]
    assert find_holder(tmp_path / "b") is None


def test_a_killed_process_is_followed_by_one_of_those_that_wait(tmp_path: Path):
    env = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    processes = [
        subprocess.Popen(
            [sys.executable, "-c", CODE, str(tmp_path)],
            env=env,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        for _ in range(3)
    ]
    try:
        first = {process: line(process) for process in processes}
        assert sorted(first.values()) == ["runs", "waits", "waits"]
        (leader,) = [process for process, said in first.items() if said == "runs"]
        leader.send_signal(signal.SIGKILL)
        leader.wait()
        (heir,) = [process for process in processes if process.pid == heir_of(leader, tmp_path)]
        while (said := line(heir)) == "waits":
            pass
        assert said == "runs"
        (last,) = [process for process in processes if process not in (leader, heir)]
        assert last.poll() is None
    finally:
        for process in processes:
            process.kill()
            process.communicate()


def heir_of(leader: "subprocess.Popen[str]", root: Path) -> int:
    for _ in range(3_000):
        holder = find_holder(root / "b")
        if holder is not None and holder.pid not in (None, leader.pid):
            return holder.pid
        time.sleep(0.01)
    raise AssertionError("no one took over")


def line(process: "subprocess.Popen[str]") -> str:
    assert process.stdout is not None
    return process.stdout.readline().strip()
