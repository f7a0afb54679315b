"""What `kaflow doctor` finds on this machine, as data."""

import os
import platform
import shutil
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from types import MappingProxyType
from typing import Literal

from kaflow_engine.connectors.kafka.native.library import library, library_path
from kaflow_engine.errors import Location, RunError
from kaflow_engine.extras import EXTRAS, Extra
from kaflow_engine.plan.needed_extras import Needs
from kaflow_engine.runtime.spark.cache import cache_dir
from kaflow_engine.runtime.spark.jars import Bundle, bundle_home, fetched
from kaflow_engine.runtime.spark.java import find_java

LEAST_MEMORY = 4
"""GiB with which Spark, its Python workers and a small state are comfortable."""
LEAST_DISK = 2
"""GiB for jars, checkpoints and state."""

_GIB = 1 << 30


@dataclass(frozen=True, slots=True, kw_only=True)
class Check:
    """One thing that was looked for."""

    name: str
    state: Literal["ok", "missing", "low"]
    found: str
    required: bool = True
    """Whether pipelines cannot run without it."""
    cure: str | None = None
    """How to get it."""

    @property
    def fatal(self) -> bool:
        """Whether nothing runs before this is cured."""
        return self.required and self.state == "missing"


def inspect_machine(needs: Needs = MappingProxyType({})) -> tuple[Check, ...]:
    """Look at Python, Java, Spark, optional parts, the fetched jars, memory, cores and disk.

    Args:
        needs: The optional parts that pipelines cannot do without, and where they say so.
    """
    return tuple(_checks(needs))


def _checks(needs: Needs) -> Iterator[Check]:
    old = sys.version_info < (3, 11)
    yield Check(
        name="python",
        state="missing" if old else "ok",
        found=f"{platform.python_version()} at {sys.executable}",
        cure="install Python 3.11 or newer" if old else None,
    )
    yield _java()
    yield _package("pyspark", "pyspark")
    yield _package("duckdb", "duckdb")
    yield _package("rocksdb", "rocksdict")
    yield _native()
    for extra in EXTRAS.values():
        yield _optional(extra, needs.get(extra.name, ()))
    yield _bundle("spark-kafka jars", "spark-kafka", "10 MB, for Kafka topics")
    yield _bundle("broker jars", "kafka-broker", "45 MB, for `kaflow dev` and tests")
    yield _bundle("registry", "registry", "142 MB, for `kaflow dev --with registry` and tests")
    yield _amount("memory", _memory(), LEAST_MEMORY, "close programs, or lower spark.driver.memory")
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
    yield Check(name="cores", state="ok", found=str(cores), required=False)
    home = _existing(cache_dir())
    yield _amount(
        "disk",
        shutil.disk_usage(home).free,
        LEAST_DISK,
        "make room, or set KAFLOW_CACHE to a folder on a larger disk",
        f" free for {cache_dir()}",
    )


def _native() -> Check:
    if library() is not None:
        return Check(name="native library", state="ok", found=str(library_path()), required=False)
    return Check(
        name="native library",
        state="missing",
        found="not in use (Spark's own source reads topics, and Python's client writes them, with "
        "more work for each record)",
        required=False,
        cure="in a checkout: make native, which needs cargo",
    )


def _java() -> Check:
    try:
        java = find_java()
    except RunError as error:
        return Check(name="java", state="missing", found=error.message, cure=error.hint)
    return Check(name="java", state="ok", found=str(java))


def _package(name: str, distribution: str) -> Check:
    try:
        return Check(name=name, state="ok", found=version(distribution))
    except PackageNotFoundError:
        cure = f"pip install {distribution}"
        return Check(name=name, state="missing", found="not installed", cure=cure)


def _optional(extra: Extra, needed_at: Sequence[Location]) -> Check:
    """Look for what an optional part of the project installs."""
    name, required = extra.distribution, bool(needed_at)
    try:
        return Check(name=name, state="ok", found=version(name), required=required)
    except PackageNotFoundError:
        places = ", ".join(str(at) for at in needed_at)
        why = f"needed by {places}" if required else f"for {extra.purpose}"
        return Check(
            name=name,
            state="missing",
            found=f"not installed ({why})",
            required=required,
            cure=extra.install,
        )


def _bundle(name: str, bundle: Bundle, about: str) -> Check:
    if fetched(bundle):
        return Check(name=name, state="ok", found=str(bundle_home(bundle)), required=False)
    return Check(
        name=name,
        state="missing",
        found=f"not fetched ({about})",
        required=False,
        cure=f"fetched on first use; now: kaflow doctor --fetch {bundle}",
    )


def _amount(name: str, found: int, least: int, cure: str, about: str = "") -> Check:
    low = found < least * _GIB
    text = f"{found / _GIB:.1f} GiB{about}"
    state: Literal["low", "ok"] = "low" if low else "ok"
    return Check(
        name=name,
        state=state,
        found=f"{text}, {least} GiB are recommended" if low else text,
        required=False,
        cure=cure if low else None,
    )


def _memory() -> int:
    return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")


def _existing(path: Path) -> Path:
    return next(folder for folder in (path, *path.parents) if folder.exists())
