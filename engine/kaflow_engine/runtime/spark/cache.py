"""The cache folder of this user for downloaded and derived files."""

import fcntl
import os
from collections.abc import Generator, Mapping
from contextlib import contextmanager
from pathlib import Path


def cache_dir(environ: Mapping[str, str] = os.environ) -> Path:
    """Return `KAFLOW_CACHE`, or `~/.cache/kaflow`; the folder need not exist yet."""
    chosen = environ.get("KAFLOW_CACHE")
    return Path(chosen).expanduser() if chosen else Path.home() / ".cache" / "kaflow"


@contextmanager
def locked(path: Path) -> Generator[None]:
    """Hold `path` as a lock between processes; waits for as long as another one holds it."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("a") as handle:
        fcntl.flock(handle, fcntl.LOCK_EX)
        yield


def write_text(path: Path, text: str) -> None:
    """Replace a file in one step, so that a reader sees the old text or the new one."""
    beside = path.with_name(f".{path.name}.{os.getpid()}")
    beside.write_text(text, encoding="utf-8")
    beside.replace(path)
