"""The wheel: what is in it, and that it works where nothing else of the project is."""

import os
import subprocess
import sys
import sysconfig
import venv
from pathlib import Path
from zipfile import ZipFile

import pytest

from tests.deploy.reading import ROOT

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def wheel(tmp_path_factory) -> Path:
    target = tmp_path_factory.mktemp("wheel")
    build = [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(target)]
    subprocess.run(build, cwd=ROOT, check=True, capture_output=True)
    (built,) = target.iterdir()
    return built


@pytest.fixture(scope="module")
def kaflow(wheel, tmp_path_factory):
    """Install the wheel beside the locked packages, and return its command."""
    home = tmp_path_factory.mktemp("clean")
    venv.create(home, symlinks=True)
    python = home / "bin" / "python"
    (packages,) = home.glob("lib/python*/site-packages")
    # the editable project is not seen from here: its path file is not read in a folder of this kind
    locked = sysconfig.get_path("purelib")
    (packages / "locked.pth").write_text(f"{locked}\n")
    install = [sys.executable, "-m", "pip", "--python", str(python), "install", "--no-deps"]
    quiet = ["--quiet", "--no-index", "--ignore-installed", "--disable-pip-version-check"]
    subprocess.run([*install, *quiet, str(wheel)], check=True, capture_output=True)
    environment = {k: v for k, v in os.environ.items() if not k.startswith(("PYTHON", "KAFLOW"))}

    def run(*arguments: str, folder: Path) -> "subprocess.CompletedProcess[str]":
        command = [str(home / "bin" / "kaflow"), *arguments]
        return subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True)

    return run


def test_it_holds_the_packages_and_their_data_and_nothing_else(wheel):
    with ZipFile(wheel) as opened:
        names = {name for name in opened.namelist() if ".dist-info/" not in name}
        (entry,) = [name for name in opened.namelist() if name.endswith("entry_points.txt")]
        assert "kaflow = kaflow_engine.cli.main:main" in opened.read(entry).decode()
    tracked = subprocess.run(
        ["git", "ls-files", "--cached", "--others", "--exclude-standard", "--", "kaflow_dagster",
         "engine/kaflow_engine"],
        cwd=ROOT, check=True, capture_output=True, text=True,
    )  # fmt: skip
    there = {name for name in tracked.stdout.split() if (ROOT / name).exists()}
    assert names == {name.removeprefix("engine/") for name in there}
    assert {
        "kaflow_engine/py.typed",
        "kaflow_dagster/py.typed",
        "kaflow_engine/runtime/spark/jars.toml",
        "kaflow_engine/runtime/spark/log4j2.properties",
        "kaflow_engine/cli/new_project/gitignore",
    } <= names
    assert not [name for name in names if name.startswith(("tests", "definitions", "bench"))]


def test_a_new_project_works_in_an_empty_folder(kaflow, tmp_path):
    version = kaflow("version", folder=tmp_path)
    assert (version.returncode, "kaflow-dagster" in version.stdout) == (0, True), version.stderr
    assert kaflow("init", "demo", folder=tmp_path).returncode == 0
    demo = tmp_path / "demo"
    for arguments, told in [
        (("validate", "."), "2 pipelines, 0 mistakes"),
        (("test", "tests"), "0 failed"),
        (("explain", "models"), "enriched_events"),
        (("config", "show"), "kafka.brokers"),
        (("plan", "."), "2 new"),
    ]:
        done = kaflow(*arguments, folder=demo)
        assert done.returncode == 0, done.stderr
        assert told in done.stdout


def test_it_is_the_installed_one_that_works(kaflow, tmp_path):
    done = kaflow("nope", "--traceback", folder=tmp_path)
    assert done.returncode == 2
    wrong = kaflow("explain", "missing.yaml", "--traceback", folder=tmp_path)
    assert "site-packages/kaflow_engine/cli/main.py" in wrong.stderr
    assert str(ROOT / "engine") not in wrong.stderr
