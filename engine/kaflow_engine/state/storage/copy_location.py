"""Location of RocksDB copies: beside the log on one machine, on local disks in a cluster."""

import fcntl
import os
import tempfile
from collections.abc import Generator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import count
from pathlib import Path
from socket import gethostname
from typing import IO
from zlib import crc32

from kaflow_engine.errors import StateError
from kaflow_engine.state.storage.private import make_private, require_private

COPIES = "copies"
"""Name of the folder in a state directory."""

_LOCAL_DIRS = "SPARK_LOCAL_DIRS"


@dataclass(frozen=True, slots=True)
class InState:
    """In the state directory: driver and tasks are on one machine."""

    directory: Path


@dataclass(frozen=True, slots=True)
class OnHost:
    """On the disk of whichever host a task runs on, where executors find them as others left them.

    A host may have several executors, and one that was given up may still hold a copy: each copy
    has an owner at a time, and who finds it taken uses another one.
    """

    pipeline: str
    folder: Path | None = None
    """None: beside the temporary files of Spark, which go with the application."""


CopyPlace = InState | OnHost


@contextmanager
def copy_root(place: CopyPlace, partition: str) -> Generator[Path]:
    """Give the directory of the copies in which this process may open a partition.

    Args:
        place: Where copies are.
        partition: State partition, `<step>-<p>`.

    Raises:
        StateError: The disk of this host cannot be written, or others may have written there.
    """
    match place:
        case InState(directory):
            yield directory / COPIES
        case OnHost():
            root = host_folder(place, partition)
            with _translated_errors(root):
                require_private(root if place.folder is not None else root.parent)
            with _claimed(root, partition) as own:
                yield own


def host_folder(place: OnHost, partition: str, environ: Mapping[str, str] = os.environ) -> Path:
    """Return where this host keeps the copies of a partition; they spread over Spark's disks.

    Args:
        place: What is configured.
        partition: State partition, `<step>-<p>`.
        environ: Of a Python worker, which Spark tells of its folders.
    """
    if place.folder is not None:
        return place.folder / place.pipeline
    # the folders in which those of executors are: all executors of an application on a host share
    # them, and Spark removes them
    folders = [Path(name).parent for name in environ.get(_LOCAL_DIRS, "").split(",") if name]
    chosen = folders or [Path(tempfile.gettempdir())]
    # in the folder of all users a name of its own for each
    own = f"kaflow-{os.geteuid()}"
    return chosen[crc32(partition.encode()) % len(chosen)] / own / place.pipeline


@contextmanager
def _claimed(root: Path, partition: str) -> Generator[Path]:
    """Hold the first copy of a partition that no other process holds."""
    for number in count():
        own = root / str(number)
        with _owner_file(own, partition) as handle:
            try:
                fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                continue
            yield own
            return


def _owner_file(root: Path, partition: str) -> IO[str]:
    with _translated_errors(root):
        make_private(root)
        return (root / f"{partition}.owner").open("a")


@contextmanager
def _translated_errors(root: Path) -> Generator[None]:
    try:
        yield
    except OSError as error:
        reason = (error.strerror or "refused").lower()
        raise StateError(
            f"the folder of state copies '{root}' cannot be written on {gethostname()}: {reason}",
            hint="set state.rocksdb.local to a folder that executors may write, on each host",
        ) from error
