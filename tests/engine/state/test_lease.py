import os
import subprocess
import sys
from pathlib import Path

import pytest

from kaflow_engine.errors import StateError
from kaflow_engine.state.lease import hold_lease


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


@pytest.mark.slow
def test_the_lease_ends_with_its_process(tmp_path: Path):
    code = (
        "import os, sys, pathlib\n"
        "from kaflow_engine.state.lease import hold_lease\n"
        "with hold_lease(pathlib.Path(sys.argv[1])):\n"
        "    os._exit(9)\n"
    )
    env = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    done = subprocess.run([sys.executable, "-c", code, str(tmp_path)], env=env, check=False)
    assert done.returncode == 9
    with hold_lease(tmp_path):
        pass
