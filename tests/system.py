"""Programs that come with the system's packages."""
# pyright: basic

import fcntl
import os
import shutil
import subprocess
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

_SERVERS = ("/usr/local/sbin", "/usr/sbin")
"""Where packages put servers, which not every PATH has."""

T = TypeVar("T")


def find_program(package: str, *others: str) -> str:
    """Return a program of this machine; where there is none, the package manager gets it.

    Args:
        package: Name of the program, and of its package.
        others: Other names under which a machine may have it.
    """
    return find_installed(package, lambda: _have(package, *others))


def find_installed(package: str, find: Callable[[], T | None]) -> T:
    """Return what `find` finds, after the package manager got the package where that is nothing."""
    with Path(tempfile.gettempdir(), "kaflow-packages.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)  # tests run side by side, the package manager does not
        if (found := find()) is None and os.getuid() == 0:
            _install(package)
            found = find()
    assert found is not None, f"there is no {package}; install it: apt-get install {package}"
    return found


def _have(*names: str) -> str | None:
    path = os.pathsep.join((os.environ.get("PATH", os.defpath), *_SERVERS))
    return next((found for name in names if (found := shutil.which(name, path=path))), None)


def _install(package: str) -> None:
    if shutil.which("apt-get"):
        for command in (
            ["apt-get", "-qq", "update"],
            ["apt-get", "-qq", "install", "-y", "--no-install-recommends", package],
        ):
            subprocess.run(
                command, check=False, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
            )
