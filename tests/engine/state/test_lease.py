import fcntl
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from kaflow_engine.errors import DrainIncomplete, StateError, StateHeld
from kaflow_engine.state.storage.lease import LEASE, Leases, find_holder, hold_lease


def test_a_second_holder_is_told_who_has_it(tmp_path: Path):
    with hold_lease(tmp_path / "state"):
        with (
            pytest.raises(StateError, match=f"process {os.getpid()} on ") as error,
            hold_lease(tmp_path / "state"),
        ):
            pass
        assert error.value.hint
    with hold_lease(tmp_path / "state"):
        pass


def test_a_lease_that_is_removed_while_it_is_taken_is_taken_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    lock = fcntl.flock
    locked: list[int] = []

    def lock_late(handle: int, how: int):
        if not locked:
            (tmp_path / LEASE).unlink()
        locked.append(handle)
        lock(handle, how)

    with monkeypatch.context() as patched:
        patched.setattr(fcntl, "flock", lock_late)
        lease = hold_lease(tmp_path)
        lease.__enter__()
    assert len(locked) == 2
    with pytest.raises(StateError, match="another run holds"), hold_lease(tmp_path):
        pass
    lease.__exit__(None, None, None)


@pytest.mark.slow
def test_the_lease_ends_with_its_process(tmp_path: Path):
    code = (
        "import os, sys, pathlib\n"
        "from kaflow_engine.state.storage.lease import hold_lease\n"
        "with hold_lease(pathlib.Path(sys.argv[1])):\n"
        "    os._exit(9)\n"
    )
    env = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    done = subprocess.run([sys.executable, "-c", code, str(tmp_path)], env=env, check=False)
    assert done.returncode == 9
    with hold_lease(tmp_path):
        pass


def test_all_are_held_or_none(tmp_path: Path):
    with Leases(tmp_path, "abc").take() as held:
        with pytest.raises(StateHeld, match="/b': process "):
            Leases(tmp_path, "eb").take()
        assert find_holder(tmp_path / "e") is None
        held.release("b")
        held.release("b")
        with Leases(tmp_path, "eb").take(), pytest.raises(StateHeld):
            Leases(tmp_path, "a").take()
    assert not any(find_holder(tmp_path / name) for name in "abe")


def test_a_batch_that_runs_on_keeps_what_it_writes_to(tmp_path: Path):
    leases = Leases(tmp_path, "a").take()
    with pytest.raises(DrainIncomplete), leases:
        raise DrainIncomplete("'a' did not stop within 1 s")
    assert find_holder(tmp_path / "a") is not None
    leases.close()


def test_a_directory_that_is_removed_meanwhile_is_not_held(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    directory, lock, handles = tmp_path / "a", fcntl.flock, list[int]()

    def remove_first(handle: int, how: int) -> None:
        if not handles:
            shutil.rmtree(directory)
        handles.append(handle)
        lock(handle, how)

    monkeypatch.setattr(fcntl, "flock", remove_first)
    with hold_lease(directory):
        assert len(handles) == 2
        assert find_holder(directory) is not None
