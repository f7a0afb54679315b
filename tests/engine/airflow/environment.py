"""The environment of Airflow: made of its lock once, and again when that changes."""
# pyright: basic

import os
import shutil
import subprocess
import sys
import venv
from hashlib import sha256
from pathlib import Path

ROOT = Path(__file__).parents[3]
LOCK = ROOT / "requirements-airflow.lock"
PLACE = ROOT / ".venv-airflow"


def airflow_here():
    """Return the environment; `home` in it has a database without DAGs."""
    stamp, key = PLACE / ".stamp", sha256(LOCK.read_bytes() + sys.version.encode()).hexdigest()
    if stamp.exists() and stamp.read_text() == key:
        return PLACE
    shutil.rmtree(PLACE, ignore_errors=True)
    venv.create(PLACE, symlinks=True)
    pip = [sys.executable, "-m", "pip", "--python", str(PLACE / "bin" / "python"), "install"]
    options = ["--quiet", "--disable-pip-version-check", "--no-compile", "--no-deps"]
    subprocess.run([*pip, *options, "--require-hashes", "--requirement", str(LOCK)], check=True)
    migrate = [str(PLACE / "bin" / "airflow"), "db", "migrate"]
    subprocess.run(migrate, env=variables(PLACE / "home"), check=True, capture_output=True)
    stamp.write_text(key)
    return PLACE


def variables(home):
    """Return the variables of a process of Airflow, which finds the project, not its packages."""
    inherited = {k: v for k, v in os.environ.items() if not k.startswith(("AIRFLOW", "PYTHON"))}
    return {
        **inherited,
        "AIRFLOW_HOME": str(home),
        "AIRFLOW__CORE__LOAD_EXAMPLES": "False",
        "PYTHONPATH": str(ROOT / "engine"),
    }
